// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const method = "/acme.orders.v1.OrderService/GetOrder"

// TestExplainedIsWhatTheServerSees lets random policies meet a server that always fails, in virtual
// time: the attempts arrive when the explanation says they are sent.
func TestExplainedIsWhatTheServerSees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set, q := drawn(rt)
		random := draw(rapid.Uint64().Draw(rt, "seed"))
		a := explain(set, api.API{}, q, random)
		var want []time.Duration
		for _, e := range a.events {
			want = append(want, e.at)
		}
		var got []time.Duration
		var callErr error
		synctest.Test(t, func(t *testing.T) {
			srv := testserver.Start(t)
			chance := func() float64 { return random[min(max(len(srv.Attempts()), 1), len(random))-1] } // as many as have failed
			retrier, err := interceptor.New(set, interceptor.WithRandom(chance), interceptor.WithObserver(interceptor.Observer{Warning: func(policy.Diagnostic) {}}))
			if err != nil {
				t.Fatal(err)
			}
			step := testserver.Fail(q.code)
			if q.pushback != "" {
				step = step.Pushback(q.pushback)
			}
			srv.Default(step)
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if q.deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, q.deadline)
			}
			defer cancel()
			conn := srv.Dial(t, retrier.DialOptions()...)
			callErr = conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
			synctest.Wait()
			for _, s := range srv.Attempts() {
				got = append(got, s.Time.Sub(srv.Attempts()[0].Time))
			}
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("the server saw %v; explained were %v\n%s", got, want, text(a, terminal.Style{}))
		}
		reason := a.events[len(a.events)-1].decision.Reason
		if e, ok := errors.AsType[*interceptor.Error](callErr); !ok || e.Reason != reason {
			rt.Fatalf("ended with %v; explained was %s", callErr, reason)
		}
	})
}

func drawn(t *rapid.T) (*policy.Set, question) {
	seconds := func(low, high int, label string) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Millisecond
	}
	retry := policy.RetrySpec{
		MaxAttempts: rapid.IntRange(2, 7).Draw(t, "attempts"),
		Backoff: policy.Backoff{
			Initial: seconds(1, 500, "initial"), Max: seconds(1, 5000, "max"), Multiplier: float64(rapid.IntRange(1, 4).Draw(t, "multiplier")),
			Jitter: rapid.SampledFrom([]policy.Jitter{policy.JitterFull, policy.JitterNone, policy.JitterEqual, policy.JitterDecorrelated, policy.JitterProportional}).Draw(t, "jitter"),
		},
		Codes:  policy.Codes(codes.Unavailable, codes.Aborted),
		Budget: policy.NoBudget,
	}
	set, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []policy.Name{{Service: "acme.orders.v1.OrderService", Method: "GetOrder"}},
		Spec: policy.Spec{
			Retry: &retry, Timeout: seconds(0, 3000, "timeout"),
			Idempotency: rapid.SampledFrom([]policy.Idempotency{policy.IdempotencyByName, policy.IdempotencyNone}).Draw(t, "idempotency"),
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return set, question{
		method:   method,
		code:     rapid.SampledFrom([]codes.Code{codes.Unavailable, codes.Aborted, codes.NotFound}).Draw(t, "code"),
		pushback: rapid.SampledFrom([]string{"", "", "-1", "0", "70", "400000", "+5"}).Draw(t, "pushback"),
		deadline: seconds(0, 3000, "deadline"),
	}
}

func TestExplainText(t *testing.T) {
	t.Parallel()
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := text(explain(set, api.API{}, question{method: method, code: codes.Unavailable}, chances{0.5, 0.5}), terminal.Style{})
	for _, want := range []string{
		"entry     /acme.orders.v1.OrderService/, which names its service\n", "safe      no: nothing declares it safe to repeat\n",
		"budget    none\n", "no other attempt", "NO         May the method be repeated?",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := text(explain(set, api.API{}, question{method: "/x.Y/Z"}, chances{}), terminal.Style{}); !strings.Contains(got, "no entry names it") {
		t.Error(got)
	}
}

func TestCodeFlag(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]codes.Code{"UNAVAILABLE": codes.Unavailable, "unavailable": codes.Unavailable, "8": codes.ResourceExhausted} {
		var got codes.Code
		if err := (codeFlag{&got}).Set(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"OK", "0", "17", "UNAVAILABEL", ""} {
		if err := (codeFlag{new(codes.Code)}).Set(name); err == nil {
			t.Errorf("%q is taken for a code", name)
		}
	}
}

// TestExplainRangeOfWaits has a deadline that leaves no time for the longest wait.
func TestExplainRangeOfWaits(t *testing.T) {
	t.Parallel()
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`))
	if err != nil {
		t.Fatal(err)
	}
	q := question{method: method, code: codes.Unavailable, deadline: 120 * time.Millisecond}
	a := explain(set, api.API{}, q, chances{0.7, 0.9})
	var got []string
	for _, e := range a.events {
		got = append(got, fmt.Sprint(e.decision.Reason, " ", e.decision.Delay, " of ", e.least, " to ", e.longest.Round(time.Millisecond)))
	}
	want := []string{"retry 70ms of 0s to 100ms", "deadline_too_close 0s of 0s to 200ms"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q; want %q", got, want)
	}
	if s := text(a, terminal.Style{}); !strings.Contains(s, "│ 0s and 200ms │ deadline_too_close │") {
		t.Error(s)
	}
}
