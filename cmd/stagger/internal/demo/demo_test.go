// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func builtIn(t *testing.T) *policy.Set {
	t.Helper()
	return must.Get(policy.Parse(orders.File, orders.Policy))(t)
}

// The whole day in virtual time, with a fifth of the calls and of the budget's reserve. The clients' results are checked
// with bounds: round_robin begins at a random backend, and jitter is random.
func TestDay(t *testing.T) {
	t.Parallel()
	small := bytes.Replace(orders.Policy, []byte("minPerSecond: 5"), []byte("minPerSecond: 1"), 1)
	if bytes.Equal(small, orders.Policy) {
		t.Fatal("the policy file has another reserve: scale that one")
	}
	set := must.Get(policy.Parse(orders.File, small))(t)
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		results := must.Get(showDay(t.Context(), newDay(1), set, 1, screen{Writer: &text}))(t)
		by := map[string]result{}
		for _, r := range results {
			by[r.name] = r
		}
		within := func(what string, got, low, high float64) {
			t.Helper()
			if got < low || got > high {
				t.Errorf("%s: %.3f; want %v to %v", what, got, low, high)
			}
		}
		none, plain, exponential, ours := by["no retries"], by["retry loop"], by["exponential"], by[stagger]
		within("no retries, requests per call", none.PerCall, 1, 1)
		within("no retries, one of four", none.phases["one of four"], 0.7, 0.8)
		within("loop, requests per call in the outage", plain.perOutage, 3.99, 4.01)
		within("loop, after the pulse", plain.phases["after the pulse"], 0, 0.1)
		within("loop, orders made twice", float64(plain.twice), 1, 1000)
		within("exponential, after the pulse", exponential.phases["after the pulse"], 0, 0.1)
		within("stagger, blip", ours.phases["blip"], 0.8, 1)
		within("stagger, one of four", ours.phases["one of four"], 0.97, 1)
		within("stagger, requests per call in the outage", ours.perOutage, 1, 1.3)
		within("stagger, pulse less than without retries", none.phases["pulse"]-ours.phases["pulse"], -1, 0.15)
		within("stagger, orders made twice", float64(ours.twice), 0, 0)
		for _, r := range []*result{&none, &plain, &exponential, &ours} {
			if back := r == &none || r == &ours; back != (r.Recovery.State == sim.RecoveryReturned) {
				t.Errorf("%s: recovered %v; want %v", r.name, r.Recovery, back)
			}
		}
		checkScreen(t, text.String())
	})
}

// checkScreen checks that each part has all clients, no colours, and lines that fit.
func checkScreen(t *testing.T, text string) {
	t.Helper()
	for _, name := range []string{"no retries", "retry loop", "exponential", stagger} {
		if got := strings.Count(text, "│ "+name); got != 2 {
			t.Errorf("%q stands in %d tables; want 2", name, got)
		}
		if got := strings.Count(text, "\n"+name+"\n"); got != 1 {
			t.Errorf("%q has %d charts; want 1", name, got)
		}
	}
	for _, want := range []string{"budget_exhausted", "outage: every backend fails", "└after the pulse"} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen lacks %q", want)
		}
	}
	for _, not := range []string{"\x1b", "%!", "could not keep up"} {
		if strings.Contains(text, not) {
			t.Errorf("the screen has %q", not)
		}
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 102 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDemoIsInterrupted(t *testing.T) {
	t.Parallel()
	set := builtIn(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		var text bytes.Buffer
		if err := run(ctx, set, 1, screen{Writer: &text}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v; want context.Canceled", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("it went on until %v; want 1s", took)
		}
	})
}

func TestWarnLate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		behind time.Duration
		warned bool
	}{{outage.TooLate, false}, {outage.TooLate + ms, true}} {
		var text bytes.Buffer
		warnLate(screen{Writer: &text}, []result{{}, {Result: outage.Result{Late: row.behind}}, {}})
		if got := strings.Contains(text.String(), "could not keep up"); got != row.warned {
			t.Errorf("%v behind: warned %v; want %v", row.behind, got, row.warned)
		}
	}
}

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestBadPolicyFileIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := execute(t, "--policy", filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: error %v; want fs.ErrNotExist", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	must.Do(t, os.WriteFile(bad, []byte("retries: 3\n"), 0o600))
	_, err := execute(t, "--policy", bad)
	if _, ok := errors.AsType[*policy.Error](err); !ok {
		t.Errorf("bad file: error %v; want a *policy.Error", err)
	}
}

const ms = time.Millisecond

func TestDayFitsIntoAMinute(t *testing.T) {
	t.Parallel()
	if got := newDay(workers).Length(); got > 30*time.Second {
		t.Errorf("the day takes %v; want at most half a minute, since a demo has at most one", got)
	}
}

func TestDaySpan(t *testing.T) {
	t.Parallel()
	d := newDay(1)
	if from, to := d.span("blip"); from != 3*time.Second || to != 3150*ms {
		t.Errorf("blip from %v to %v; want 3s to 3.15s", from, to)
	}
	if from, to := d.span("calm"); from != 0 || to != 0 {
		t.Errorf("a phase that is not in the tables from %v to %v; want 0 to 0", from, to)
	}
	if want := []string{"blip", "one of four", "outage", "pulse", "after the pulse"}; !slices.Equal(d.labels(), want) {
		t.Errorf("labels %q; want %q", d.labels(), want)
	}
}

func TestDayCalls(t *testing.T) {
	t.Parallel()
	d := newDay(20) // many calls, so that random differences even out
	calls := d.calls(7)
	if !slices.Equal(calls, d.calls(7)) {
		t.Error("the calls of one seed differ")
	}
	creates := func(c outage.Call) bool { return c.Method == orders.CreateOrder }
	created := len(calls) - len(slices.DeleteFunc(slices.Clone(calls), creates))
	if got := float64(created) / float64(len(calls)); math.Abs(got-orderShare) > 0.005 {
		t.Errorf("%.4f of the calls create an order; want about %v", got, orderShare)
	}
}
