// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestLoop(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		loop loop
		step testserver.Step
		want string // between attempts
	}{
		"no wait":                 {loop{}, down(), "[0s 0s 0s]"},
		"exponential":             {loop{initial: 100 * ms}, down(), "[100ms 200ms 400ms]"},
		"after attempt timeouts":  {loop{}, testserver.Hang(), "[200ms 200ms 200ms]"},
		"not for other failures":  {loop{}, testserver.Fail(codes.InvalidArgument), "[]"},
		"not when it is answered": {loop{}, testserver.OK(), "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(orders.GetOrder, row.step)
				conn := server.Dial(t, row.loop.options()...)
				_ = conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{})
				synctest.Wait()
				waits := []time.Duration{}
				seen := server.Attempts()
				for i := 1; i < len(seen); i++ {
					waits = append(waits, seen[i].Time.Sub(seen[i-1].Time))
				}
				if got := fmt.Sprint(waits); got != row.want {
					t.Errorf("waits %s; want %s", got, row.want)
				}
			})
		})
	}
}

func TestResultByPhase(t *testing.T) {
	t.Parallel()
	d := newDay(1)
	d.Phases = []sim.Phase{
		{Name: "outage: all fails", Length: time.Second},
		{Name: "pulse: more", Length: time.Second},
		{Name: "after the pulse: less", Kind: sim.KindAfter, Length: time.Second},
	}
	r := outage.Record{Scenario: d.Scenario, Requests: make([][]outage.Request, 1)}
	for at := time.Duration(0); at < 3*time.Second; at += ms {
		requests, ok := 1, at >= time.Second
		if !ok {
			requests = 3
		}
		r.Calls = append(r.Calls, outage.Ended{Call: outage.Call{At: at}, OK: ok})
		for range requests {
			r.Requests[0] = append(r.Requests[0], outage.Request{At: at})
		}
	}
	got := newResult(d, "x", &r)
	if got.phases["outage"] != 0 || got.phases["pulse"] != 1 || got.phases["after the pulse"] != 1 {
		t.Errorf("success by phase %v; want 0, 1, 1", got.phases)
	}
	if got.perOutage != 3 || got.PerCall != 5./3 || got.Success != 2./3 {
		t.Errorf("%v requests per call in the outage, %v in all, success %v; want 3, 5/3, 2/3", got.perOutage, got.PerCall, got.Success)
	}
	if got.Recovery != (sim.Recovered{State: sim.RecoveryReturned}) {
		t.Errorf("recovery %+v; want at once", got.Recovery)
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
		"once":                    {orders.CreateOrder, []testserver.Attempt{done}, 0},
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

func TestReasons(t *testing.T) {
	t.Parallel()
	var r reasons
	tell := r.observer().Call
	tell(t.Context(), interceptor.Event{Reason: policy.ReasonSucceeded})
	for _, reason := range []policy.Reason{policy.ReasonNotIdempotent, policy.ReasonBudgetExhausted, policy.ReasonBudgetExhausted, policy.ReasonNonRetryable} {
		tell(t.Context(), interceptor.Event{Reason: reason, Err: &interceptor.Error{}})
	}
	want := "      2  budget_exhausted\n      1  non_retryable\n      1  not_idempotent\n"
	if got := r.String(); got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
