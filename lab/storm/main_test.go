// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// drizzle is short, so that all clients can be played under the race detector too.
func drizzle(t *testing.T, tg target) []storm {
	t.Helper()
	s, err := load("storms/one-hangs.yaml") // for its attempt timeout
	if err != nil {
		t.Fatal(err)
	}
	s.Title, s.About, s.target = "drizzle", "one backend of four fails for a moment", tg
	s.Phases = []sim.Phase{
		{Name: "calm", Kind: sim.KindLead, Length: 400 * ms, Load: 0.1},
		{Name: "trouble", Length: 200 * ms, Load: 0.1, Faults: []sim.Fault{{Service: "shop", Backends: []int{0}, Down: true, Code: codes.Unavailable}}},
		{Name: "after", Kind: sim.KindAfter, Length: 400 * ms, Load: 0.1},
	}
	return []storm{s}
}

// played runs the whole program with a drizzle in virtual time.
func played(t *testing.T, tg target, args ...string) (out string, err error) {
	t.Helper()
	var text, errs bytes.Buffer
	all := drizzle(t, tg)
	flags := append([]string{"-html=", "-json="}, args...)
	synctest.Test(t, func(t *testing.T) { err = command(t.Context(), flags, all, &text, &errs) })
	if strings.Contains(text.String(), "could not keep up") {
		t.Error("a machine in virtual time could not keep up")
	}
	return text.String(), err
}

func TestCommand(t *testing.T) {
	t.Parallel()
	out, err := played(t, target{success: 0.5}, "-strict") // the target is reached
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients(1) {
		if got := strings.Count(out, fmt.Sprintf("\n│ %-18s │ ", c.name)); got != 1 {
			t.Errorf("%q stands in the table %d times; want once:\n%s", c.name, got, out)
		}
	}
	for _, want := range []string{"drizzle: one backend of four fails for a moment", "target: success at least 50 %", "PASS", "p999: of all calls"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	unreachable := target{perCall: 0.5}
	out, err := played(t, unreachable, "-markdown")
	if err != nil {
		t.Errorf("without -strict: %v; want no error", err)
	}
	if !strings.Contains(out, "MISS") || !strings.Contains(out, "| no retries |") || strings.Contains(out, "│") {
		t.Errorf("want Markdown with a MISS:\n%s", out)
	}
	if _, err := played(t, unreachable, "-strict"); !errors.Is(err, errMissed) {
		t.Errorf("with -strict: %v; want %v", err, errMissed)
	}
}

func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`argument "now": want flags only`:      {"now"},
		"-parallel 0: want at least 1":         {"-parallel", "0"},
		"-repeat -1: want at least 0":          {"-repeat", "-1"},
		`-storms "hail": matches no storm`:     {"-storms", "hail"},
		"-storms: error parsing regexp":        {"-storms", "("},
		"flag provided but not defined: -loud": {"-loud"},
	} {
		if _, err := played(t, target{}, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want %q", args, err, want)
		}
	}
}

func TestCommandIsInterrupted(t *testing.T) {
	t.Parallel()
	all := drizzle(t, target{})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*ms, cancel)
		start := time.Now()
		var text bytes.Buffer
		if err := command(ctx, []string{"-html=", "-json="}, all, &text, &text); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v; want context.Canceled", err)
		}
		if took := time.Since(start); took != 300*ms {
			t.Errorf("it went on until %v; want 300ms", took)
		}
	})
}

func TestWarnLate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		late   time.Duration
		warned bool
	}{{outage.TooLate, false}, {outage.TooLate + ms, true}} {
		var text bytes.Buffer
		warnLate(&text, &outcome{clients: []client{{name: "x"}}, results: []result{{Result: outage.Result{Late: row.late}}}})
		if got := strings.Contains(text.String(), "could not keep up"); got != row.warned {
			t.Errorf("%v late: warned %v; want %v", row.late, got, row.warned)
		}
	}
}
