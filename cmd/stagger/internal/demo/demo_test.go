// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The troubles' figures, within bounds that hold for any seed.
func TestDay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		r := testkit.Must(playDay(t.Context(), readmePolicy(t), seed+1))(t)
		got := map[string]float64{}
		for i := range r.Runs {
			run := &r.Runs[i]
			for _, label := range []string{"rolling restart", "one fails", "one hangs", "outage", "chain outage"} {
				in := phaseOf(r, run, label)
				got[run.Name+", "+label] = sim.Ratio(in.succeeded[reads], in.begun[reads])
				got[run.Name+", requests in "+label] = sim.Ratio(in.requests[orders], in.begun[reads]+in.begun[payments])
				got[run.Name+", requests at the end of "+label] = sim.Ratio(in.requests[stock], in.begun[chain])
			}
			got[run.Name+", requests for each payment"] = run.Fleets[payments].PerCall
		}
		for what, bounds := range map[string][2]float64{
			"no retries, rolling restart":                     {0.7, 0.8},
			"no retries, one hangs":                           {0.7, 0.8},
			"no retries, requests in outage":                  {1, 1},
			"retry loop, requests in outage":                  {3.9, 4.1},
			"retry loop, requests at the end of chain outage": {60, 64},
			"retry loop, requests for each payment":           {1.2, 4},
			"gRPC, one fails":                                 {0.98, 1},
			"gRPC, one hangs":                                 {0.7, 0.8},
			"gRPC, requests in outage":                        {3.5, 4},
			"gRPC throttled, requests in outage":              {1, 1.5},
			"stagger, rolling restart":                        {0.98, 1},
			"stagger, one fails":                              {0.98, 1},
			"stagger, one hangs":                              {0.95, 1},
			"stagger, requests in outage":                     {1, 1.15},
			"stagger, requests at the end of chain outage":    {1, 1.15},
			"stagger, requests for each payment":              {1, 1},
		} {
			if v := got[what]; v < bounds[0] || v > bounds[1] {
				t.Errorf("seed %d: %s: %.3f; want %v to %v", r.Seed, what, v, bounds[0], bounds[1])
			}
		}
	}
}

func readmePolicy(t *testing.T) *policy.Set {
	t.Helper()
	return testkit.Must(policy.Parse("retry.yaml", policyFile))(t)
}

func TestDayIsShown(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		var text bytes.Buffer
		testkit.NoError(t, showDay(t.Context(), readmePolicy(t), 1, all, &text))
		wantTables, wantCharts := 1, 0
		if all {
			wantTables, wantCharts = 8, 4
		}
		for _, name := range []string{"no retries", "retry loop", "gRPC throttled", stagger} {
			if tables, charts := strings.Count(text.String(), "│ "+name+" "), strings.Count(text.String(), "\n"+name+": requests"); tables != wantTables || charts != wantCharts {
				t.Errorf("%q stands in %d tables and over %d charts; want %d and %d", name, tables, charts, wantTables, wantCharts)
			}
		}
		s := text.String()
		if strings.Contains(s, "\x1b") || strings.Contains(s, "%!") {
			t.Errorf("want neither colours nor broken formats:\n%s", s)
		}
		if lines := strings.Count(s, "\n"); !all && lines > 40 {
			t.Errorf("%d lines; want a screen of 40", lines)
		}
	}
}

// A policy file with an entry for payments is followed for them, too.
func TestDay_OwnPolicy(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.Load("../../../../examples/orders/retry.yaml"))(t)
	r := testkit.Must(playDay(t.Context(), set, 1))(t)
	run := &r.Runs[len(r.Runs)-1]
	if in := phaseOf(r, run, "one fails"); run.Name != stagger || sim.Ratio(in.succeeded[reads], in.begun[reads]) < 0.98 ||
		run.Fleets[payments].PerCall != 1 {
		t.Errorf("%s: %d of %d reads, and %.2f requests for each payment", run.Name, in.succeeded[reads], in.begun[reads],
			run.Fleets[payments].PerCall)
	}
}

func TestBadPolicyFileIsRefused(t *testing.T) {
	t.Parallel()
	cmd := Command()
	cmd.SetArgs([]string{"--policy", filepath.Join(t.TempDir(), "none.yaml")})
	cmd.SetOut(new(bytes.Buffer))
	cmd.SetErr(new(bytes.Buffer))
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: error %v; want fs.ErrNotExist", err)
	}
}
