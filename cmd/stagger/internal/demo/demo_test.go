// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// smallDay has a fifth of the day's calls, workers and reserve of the budget.
func smallDay(t *testing.T) (*sim.Scenario, *policy.Set) {
	t.Helper()
	smaller := strings.NewReplacer("workers: 5", "workers: 1", "queue: 375", "queue: 75", "rate: 1000", "rate: 200", "minPerSecond: 5", "minPerSecond: 1")
	day := must.Get(sim.Parse("day.yaml", []byte(smaller.Replace(string(dayFile))), nil))(t)
	set := must.Get(policy.Parse(orders.File, []byte(smaller.Replace(string(orders.Policy)))))(t)
	if day.Services[0].Workers != 1 || day.Length() > 30*time.Second || bytes.Contains(orders.Policy, []byte("minPerSecond: 1")) {
		t.Fatal("want a day and a policy to make smaller, and a day of at most half a minute")
	}
	return day, set
}

// The whole day in virtual time. The clients' results are checked with bounds: round_robin begins at a random backend, and jitter is
// random.
func TestDay(t *testing.T) {
	t.Parallel()
	day, set := smallDay(t)
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		by := map[string]result{}
		for _, r := range must.Get(showDay(t.Context(), day, set, 1, &text))(t) {
			by[r.name] = r
		}
		none, plain, exponential, ours := by["no retries"], by["retry loop"], by["exponential"], by[stagger]
		for what, row := range map[string][3]float64{
			"no retries, requests per call":            {none.PerCall, 1, 1},
			"no retries, one of four":                  {none.phases["one of four"], 0.7, 0.8},
			"loop, requests per call in the outage":    {plain.perOutage, 3.99, 4.01},
			"loop, after the pulse":                    {plain.phases["after the pulse"], 0, 0.1},
			"loop, orders made twice":                  {float64(plain.twice), 1, 1000},
			"exponential, after the pulse":             {exponential.phases["after the pulse"], 0, 0.1},
			"stagger, blip":                            {ours.phases["blip"], 0.8, 1},
			"stagger, one of four":                     {ours.phases["one of four"], 0.97, 1},
			"stagger, requests per call in the outage": {ours.perOutage, 1, 1.3},
			"stagger, pulse less than no retries":      {none.phases["pulse"] - ours.phases["pulse"], -1, 0.15},
			"stagger, orders made twice":               {float64(ours.twice), 0, 0},
		} {
			if row[0] < row[1] || row[0] > row[2] {
				t.Errorf("%s: %.3f; want %v to %v", what, row[0], row[1], row[2])
			}
		}
		for name, want := range map[string]bool{"no retries": true, "retry loop": false, "exponential": false, stagger: true} {
			if r := by[name].Recovery; want != (r.State == sim.RecoveryReturned) {
				t.Errorf("%s: recovered %v; want %v", name, r, want)
			}
			if tables, charts := strings.Count(text.String(), "│ "+name), strings.Count(text.String(), "\n"+name+"\n"); tables != 2 || charts != 1 {
				t.Errorf("%q stands in %d tables and over %d charts; want 2 and 1", name, tables, charts)
			}
		}
		if s := text.String(); !strings.Contains(s, "budget_exhausted") || strings.Contains(s, "\x1b") || strings.Contains(s, "%!") {
			t.Errorf("want the reasons, and neither colours nor broken formats:\n%s", s)
		}
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 102 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	})
}

func TestWarnLate(t *testing.T) {
	t.Parallel()
	for late, warned := range map[time.Duration]bool{outage.TooLate: false, outage.TooLate + ms: true} {
		var text bytes.Buffer
		warnLate(&text, []result{{}, {Result: outage.Result{Late: late}}, {}})
		if got := strings.Contains(text.String(), "could not keep up"); got != warned {
			t.Errorf("%v late: warned %v; want %v", late, got, warned)
		}
	}
}

func TestDayIsInterrupted(t *testing.T) {
	t.Parallel()
	day, set := smallDay(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, context.Canceled)
		defer cancel()
		start := time.Now()
		if _, err := showDay(ctx, day, set, 1, new(bytes.Buffer)); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("error %v after %v; want context.Canceled after 1s", err, time.Since(start))
		}
	})
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

func TestLoop(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		initial time.Duration
		step    testserver.Step
		want    string // between attempts
	}{
		"no wait":                {0, down(), "[0s 0s 0s]"},
		"exponential":            {100 * ms, down(), "[100ms 200ms 400ms]"},
		"after attempt timeouts": {0, testserver.Hang(), "[200ms 200ms 200ms]"},
		"not for other failures": {0, testserver.Fail(codes.InvalidArgument), "[]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := testserver.Start(t)
			server.On(orders.GetOrder, row.step)
			conn := server.Dial(t, loop(row.initial)...)
			_ = conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{})
			synctest.Wait()
			waits := []time.Duration{}
			seen := server.Attempts()
			for i := 1; i < len(seen); i++ {
				waits = append(waits, seen[i].Time.Sub(seen[i-1].Time))
			}
			if got := fmt.Sprint(waits); got != row.want {
				t.Errorf("%s: waits %s; want %s", name, got, row.want)
			}
		})
	}
}

func TestTwice(t *testing.T) {
	t.Parallel()
	done := testserver.Attempt{Code: codes.OK, Received: 1}
	left := testserver.Attempt{Code: codes.Canceled, Cancelled: true, Received: 1} // and served
	cut := testserver.Attempt{Code: codes.Canceled, Cancelled: true}               // before its request came
	refused := testserver.Attempt{Code: codes.ResourceExhausted, Received: 1}
	for name, row := range map[string]struct {
		method   string
		attempts []testserver.Attempt
		want     int
	}{
		"again after a refusal":   {orders.CreateOrder, []testserver.Attempt{refused, done}, 0},
		"again after a timeout":   {orders.CreateOrder, []testserver.Attempt{left, done}, 1},
		"again after a cut":       {orders.CreateOrder, []testserver.Attempt{cut, cut, done}, 0},
		"three times":             {orders.CreateOrder, []testserver.Attempt{left, left, done}, 1},
		"a read may be done more": {orders.GetOrder, []testserver.Attempt{left, done}, 0},
	} {
		var requests []outage.Request
		for _, a := range row.attempts {
			a.Method, a.Requests = row.method, [][]byte{[]byte("order 1")}
			requests = append(requests, outage.Request{Attempt: a})
		}
		if got := twice(requests); got != row.want {
			t.Errorf("%s: %d made twice; want %d", name, got, row.want)
		}
	}
}

func TestStories(t *testing.T) {
	t.Parallel()
	set := must.Get(policy.Parse(orders.File, orders.Policy))(t)
	want := [][]string{
		{
			"1 UNAVAILABLE: backoff",
			"2 RESOURCE_EXHAUSTED: the server's answer: google.rpc.RetryInfo",
			"3 slow: backoff",
			"4 OK: ",
			"3 given up: ",
			"0 call ends: OK: succeeded",
		},
		{"1 UNAVAILABLE: not_idempotent", "0 call ends: UNAVAILABLE: not_idempotent"},
		{"1 UNAVAILABLE: budget_exhausted", "0 call ends: UNAVAILABLE: budget_exhausted"},
	}
	for i, s := range stories() {
		synctest.Test(t, func(t *testing.T) {
			told := must.Get(s.play(t.Context(), set))(t)
			var got []string
			for k, l := range told.lines {
				got = append(got, fmt.Sprintf("%d %s: %s", l.attempt, l.outcome, l.reason))
				if l.at.Before(told.begin) || k > 0 && l.at.Before(told.lines[k-1].at) {
					t.Errorf("line %d at %v is before the one above", k, l.at)
				}
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("lines %q; want %q", got, want[i])
			}
		})
	}
}
