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

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The troubles' figures, within bounds that hold for any seed.
func TestDay(t *testing.T) {
	t.Parallel()
	set := must.Get(policy.Parse(orders.File, orders.Policy))(t)
	for seed := range uint64(3) {
		r := must.Get(playDay(t.Context(), set, seed+1))(t)
		got := map[string]float64{}
		for i, p := range r.Runs {
			for _, label := range []string{"blip", "one of four", "outage", "after the pulse"} {
				in := phase(r, i, label)
				got[p.Name+", "+label] = sim.Ratio(in.succeeded, in.calls)
				got[p.Name+", requests in "+label] = sim.Ratio(in.requests, in.calls)
			}
			got[p.Name+", requests for each CreateOrder"] = p.Fleets[0].ByCall[1].PerCall
			if recovered := p.Fleets[0].Recovery.State == sim.RecoveryReturned; recovered != (i != 1) {
				t.Errorf("%s: recovered %v", p.Name, p.Fleets[0].Recovery)
			}
		}
		for what, bounds := range map[string][2]float64{
			"no retries, one of four":                   {0.7, 0.8},
			"no retries, requests in outage":            {1, 1},
			"retry loop, requests in outage":            {3.9, 4.1},
			"retry loop, after the pulse":               {0, 0.1},
			"gRPC, after the pulse":                     {0.6, 1},
			"gRPC, requests in outage":                  {3.5, 4},
			"gRPC 100/1, requests in outage":            {1, 1.1},
			"retry loop, requests for each CreateOrder": {1.3, 4},
			"stagger, blip":                             {0.7, 1},
			"stagger, one of four":                      {0.97, 1},
			"stagger, requests in outage":               {1, 1.3},
			"stagger, requests for each CreateOrder":    {1, 1},
		} {
			if v := got[what]; v < bounds[0] || v > bounds[1] {
				t.Errorf("seed %d: %s: %.3f; want %v to %v", r.Seed, what, v, bounds[0], bounds[1])
			}
		}
	}
}

func TestDayIsShown(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	must.Do(t, showDay(t.Context(), must.Get(policy.Parse(orders.File, orders.Policy))(t), 1, &text))
	for _, name := range []string{"no retries", "retry loop", "gRPC 100/1", stagger} {
		if tables, charts := strings.Count(text.String(), "│ "+name+" "), strings.Count(text.String(), "\n"+name+": requests"); tables != 3 || charts != 1 {
			t.Errorf("%q stands in %d tables and over %d charts; want 3 and 1", name, tables, charts)
		}
	}
	if s := text.String(); !strings.Contains(s, "budget_exhausted") || strings.Contains(s, "\x1b") || strings.Contains(s, "%!") {
		t.Errorf("want the reasons, and neither colours nor broken formats:\n%s", s)
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
