// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const method = "/acme.orders.v1.OrderService/GetOrder"

// TestExplainedIsWhatTheServerSees plays random policies against a server that always fails, in virtual time: the attempts
// arrive at the explained times.
func TestExplainedIsWhatTheServerSees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set, q := drawn(rt)
		random := explain.Draw(rapid.Uint64().Draw(rt, "seed"))
		a := explain.Explain(decision.Compile(set), cli.API{}.Level, q, random)
		var want []time.Duration
		for _, e := range a.Events {
			want = append(want, e.At)
		}
		var got []time.Duration
		var callErr error
		synctest.Test(t, func(t *testing.T) {
			srv := testserver.Start(t)
			chance := func() float64 { return random[min(max(len(srv.Attempts()), 1), len(random))-1] } // as many as have failed
			retrier := must.Get(interceptor.New(set, inside.Random(chance).(interceptor.Option), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
			step := testserver.Fail(q.Code)
			if q.Pushback != "" {
				step = step.Pushback(q.Pushback)
			}
			srv.On("*", step)
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if q.Deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, q.Deadline)
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
		reason := a.Events[len(a.Events)-1].Decision.Reason
		if e, ok := errors.AsType[*interceptor.Error](callErr); !ok || e.Reason != reason {
			rt.Fatalf("ended with %v; explained was %s", callErr, reason)
		}
	})
}

func drawn(t *rapid.T) (*policy.Set, explain.Question) {
	seconds := func(low, high int, label string) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Millisecond
	}
	retry := policy.RetrySpec{
		MaxAttempts: rapid.IntRange(2, 7).Draw(t, "attempts"),
		Backoff: policy.Backoff{
			Initial: seconds(1, 500, "initial"), Max: seconds(1, 5000, "max"), Multiplier: float64(rapid.IntRange(1, 4).Draw(t, "multiplier")),
			Jitter: rapid.SampledFrom([]policy.Jitter{policy.JitterFull, policy.JitterNone, policy.JitterEqual, policy.JitterDecorrelated, policy.JitterProportional}).Draw(t, "jitter"),
		},
		Codes:  []codes.Code{codes.Unavailable, codes.Aborted},
		Budget: policy.NoBudget,
	}
	set := must.Get(policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []string{"/acme.orders.v1.OrderService/GetOrder"},
		Spec: policy.Spec{
			Retry: &retry, Timeout: seconds(0, 3000, "timeout"),
			Idempotency: rapid.SampledFrom([]policy.Idempotency{"", policy.IdempotencyNone}).Draw(t, "idempotency"),
		},
	}}}))(t)
	return set, explain.Question{
		MaxAttempts: defaults.MaxAttempts,
		Method:      method,
		Code:        rapid.SampledFrom([]codes.Code{codes.Unavailable, codes.Aborted, codes.NotFound}).Draw(t, "code"),
		Pushback:    rapid.SampledFrom([]string{"", "", "-1", "0", "70", "400000", "+5"}).Draw(t, "pushback"),
		Deadline:    seconds(0, 3000, "deadline"),
	}
}

func TestExplainText(t *testing.T) {
	t.Parallel()
	set := must.Get(policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}
`)))(t)
	got := text(explain.Explain(decision.Compile(set), cli.API{}.Level, explain.Question{MaxAttempts: defaults.MaxAttempts, Method: method, Code: codes.Unavailable}, explain.Chances{0.5, 0.5}), terminal.Style{})
	for _, want := range []string{
		"entry     /acme.orders.v1.OrderService/, which names its service\n", "safe      no: nothing declares it idempotent\n",
		"refused   gRPC itself retries the call once if the server refuses its stream (transparentRetry: ALLOW)\n",
		"          a server that says it did not process the call is believed (refusedRetry: ALLOW)\n",
		"budget    none\n", "no other attempt", "NO         Is the method idempotent?",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := text(explain.Explain(decision.Compile(set), cli.API{}.Level, explain.Question{MaxAttempts: defaults.MaxAttempts, Method: "/x.Y/Z"}, explain.Chances{0}), terminal.Style{}); !strings.Contains(got, "no entry names it") {
		t.Error(got)
	}
}

// TestExplainRangeOfWaits has a deadline that leaves no time for the longest wait.
func TestExplainRangeOfWaits(t *testing.T) {
	t.Parallel()
	set := must.Get(policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`)))(t)
	q := explain.Question{MaxAttempts: defaults.MaxAttempts, Method: method, Code: codes.Unavailable, Deadline: 120 * time.Millisecond}
	a := explain.Explain(decision.Compile(set), cli.API{}.Level, q, explain.Chances{0.7, 0.9})
	var got []string
	for _, e := range a.Events {
		got = append(got, fmt.Sprint(e.Decision.Reason, " ", e.Decision.Delay, " of ", e.Least, " to ", e.Longest.Round(time.Millisecond)))
	}
	want := []string{"retry 70ms of 0s to 100ms", "deadline_too_close 0s of 0s to 200ms"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q; want %q", got, want)
	}
	if s := text(a, terminal.Style{}); !strings.Contains(s, "│ 0s and 200ms │ deadline_too_close │") {
		t.Error(s)
	}
}

// TestSlowExplainedIsWhatTheServerSees does the same for slow or endless attempts, with attempt timeouts and hedges. Times
// are drawn so that no two events coincide.
func TestSlowExplainedIsWhatTheServerSees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set, q := drawnSlow(rt)
		a := explain.Explain(decision.Compile(set), cli.API{}.Level, q, explain.Chances{0})
		var got []time.Duration
		var callErr error
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			srv := testserver.Start(t)
			retrier := must.Get(interceptor.New(set, inside.Random(func() float64 { return 0 }).(interceptor.Option),
				interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
			step := testserver.Fail(q.Code).Delay(q.Latency)
			if q.Hang {
				step = testserver.Hang()
			}
			conn := srv.Dial(t, retrier.DialOptions()...)
			if !q.Unknown {
				learn(t, srv, conn)
			}
			srv.On("*", step)
			began := time.Now()
			callErr = conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
			took = time.Since(began)
			synctest.Wait()
			for _, s := range srv.Attempts() {
				got = append(got, s.Time.Sub(began))
			}
		})
		if fmt.Sprint(got) != fmt.Sprint(a.Sent) || took != a.At {
			rt.Fatalf("the server saw %v, and the call took %v; explained were %v and %v\n%s", got, took, a.Sent, a.At, text(a, terminal.Style{}))
		}
		if e, ok := errors.AsType[*interceptor.Error](callErr); ok && e.Reason != a.End.Reason || status.Code(callErr).String() != codeNamed(a.EndCode()) {
			rt.Fatalf("ended with %v; explained was %s, %s", callErr, a.EndCode(), a.End.Reason)
		}
	})
}

// learn makes calls that are answered at once, so that the usual latency of the method is known.
func learn(t *testing.T, srv *testserver.Server, conn *grpc.ClientConn) {
	t.Helper()
	srv.On("*", testserver.OK())
	for range 20 {
		must.Do(t, conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	srv.Reset()
}

// codeNamed returns a code by its name in gRPC for Go.
func codeNamed(name string) string {
	c, _ := codename.Parse(name)
	return c.String()
}

func drawnSlow(t *rapid.T) (*policy.Set, explain.Question) {
	odd := func(low, high, unit int, label string) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, label)*unit) * time.Microsecond
	}
	q := explain.Question{
		MaxAttempts: defaults.MaxAttempts, Method: method, Code: rapid.SampledFrom([]codes.Code{codes.Aborted, codes.NotFound}).Draw(t, "code"),
		Hang: rapid.Bool().Draw(t, "hang"), Latency: odd(1, 800, 1031, "latency"),
		Unknown: rapid.Bool().Draw(t, "unknown"),
	}
	spec := policy.Spec{Timeout: odd(100, 3000, 1009, "timeout")}
	attempts := rapid.IntRange(2, 5).Draw(t, "attempts")
	if rapid.Bool().Draw(t, "hedges") {
		spec.Hedge = &policy.HedgeSpec{
			MaxAttempts: attempts, Delay: odd(1, 300, 1013, "delay"), NonFatal: []codes.Code{codes.Aborted}, Budget: policy.NoBudget,
		}
		if !q.Hang && q.Latency > spec.Hedge.Delay {
			spec.Hedge.MaxAttempts = min(attempts, 3) // the second fails when the fourth is due: either may come first
		}
	} else {
		spec.Retry = &policy.RetrySpec{
			MaxAttempts: attempts, Codes: []codes.Code{codes.Aborted}, Budget: policy.NoBudget,
			Backoff:           policy.Backoff{Initial: odd(1, 200, 1019, "initial"), Max: time.Second, Multiplier: 2, Jitter: policy.JitterNone},
			PerAttemptTimeout: odd(1, 500, 1021, "per attempt"),
			CancelOnTimeout:   rapid.Bool().Draw(t, "cancel on timeout"),
		}
	}
	set := must.Get(policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []string{"/acme.orders.v1.OrderService/GetOrder"}, Spec: spec,
	}}}))(t)
	return set, q
}

const slowPolicy = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, ABORTED],
    jitter: NONE, perAttemptTimeout: 0.2s, onAttemptTimeout: RETRY, maxPushback: 9s, perCode: [{codes: [ABORTED], maxAttempts: 2, costFactor: 2}],
    codeOverrides: [{codes: [UNKNOWN], messageContains: deadlock, as: ABORTED}]}
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s, hedgingQuantile: {quantile: 0.95, max: 1s}}
- name: [{service: acme.orders.v1.OrderService, method: CountOrders}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE}
  admission: REFUSE
  criticality: CRITICAL
`

func TestExplainPool(t *testing.T) {
	t.Parallel()
	const pooled = `
budgets: [{name: orders, ratio: {fleet: {name: shared, perSecond: 2.5}}}, {name: own, ratio: {}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: orders}
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: own}
`
	for _, one := range []struct {
		args []string
		want string
		has  bool
	}{
		{[]string{method}, "  pool      shared: 2.5 extra attempts a second for all processes together, ", true},
		{[]string{method, "--format", "json"}, `"pool": {`, true},
		{[]string{method, "--format", "json"}, `"perSecond": 2.5`, true},
		{[]string{strings.Replace(method, "GetOrder", "ListOrders", 1)}, "pool", false},
		{[]string{strings.Replace(method, "GetOrder", "ListOrders", 1), "--format", "json"}, "pool", false},
	} {
		got, err := run(t, pooled, append([]string{"-"}, one.args...)...)
		if err != nil || strings.Contains(got, one.want) != one.has {
			t.Errorf("%q: %v: %q is there: %v; want %v\n%s", one.args, err, one.want, !one.has, one.has, got)
		}
	}
}

func TestExplainFlags(t *testing.T) {
	t.Parallel()
	list := strings.Replace(method, "GetOrder", "ListOrders", 1)
	for _, one := range []struct {
		args []string
		want []string
	}{
		{[]string{method}, []string{
			"  codes     ABORTED, UNAVAILABLE\n", "  backoff   100ms, × 2 each time, up to 1s; jitter NONE\n", "            ABORTED: 2 attempts; costs the budget × 2\n",
			`            UNKNOWN counts as ABORTED if its message has "deadlock"`, "  timeouts  200ms for an attempt, then another one in its place (RETRY)",
			"  pushback  obeyed up to 9s; ", "The call ends after 300ms with UNAVAILABLE: attempts_exhausted (3 attempts).\n",
		}},
		{[]string{strings.Replace(method, "GetOrder", "CountOrders", 1)}, []string{
			"  backoff   none before the first retry (AT_ONCE; within 1 ms), then 100ms, × 2 each time, up to 1s; jitter FULL\n",
			"│   0s and 1ms │ retry", "│ 0s and 100ms │ retry",
		}},
		{[]string{method, "--hang"}, []string{"another attempt in its place", "The call does not end"}},
		{[]string{method, "--hang", "--deadline", "1.5s"}, []string{"The call ends after 1.5s with DEADLINE_EXCEEDED: deadline_exceeded (3 attempts).\n"}},
		{[]string{method, "--latency", "1ms"}, []string{"│       1 │    0s │ UNAVAILABLE │   1ms │ another attempt  │ 100ms"}},
		{[]string{method, "--budget-empty"}, []string{"budget    default, which is empty\n", "budget_exhausted (1 attempt).\n"}},
		{[]string{method, "--breaker-open"}, []string{"the circuit opens after the first", "breaker_open (1 attempt).\n"}},
		{[]string{method, "--hang", "--deadline", "1.5s", "--slow-everywhere"}, []string{
			"no attempt is ever answered, and the last answers of the method were slow", "The call ends after 1.5s with DEADLINE_EXCEEDED: slow_everywhere (1 attempt).\n",
		}},
		{[]string{strings.Replace(method, "GetOrder", "CountOrders", 1), "--overloaded", "--deadline", "1s"}, []string{
			"  admission REFUSE: a call that cannot be answered before its deadline is not made; criticality CRITICAL\n",
			"at once, and the service becomes overloaded after the first", "The call ends after 0s with UNAVAILABLE: overloaded (1 attempt).\n",
		}},
		{[]string{method, "--overloaded", "--deadline", "1s"}, []string{"attempts_exhausted (3 attempts).\n"}}, // without admission
		{[]string{method, "--down"}, []string{
			"  down      calls wait for a connection for up to 3s, and have no deadline; not at all when the outage is older than 10s\n",
			"If no connection can be made, from the call's start on:", "another attempt, once connected", "The call ends after 3s with UNAVAILABLE: not_connected (1 attempt).\n",
		}},
		{[]string{method, "--down", "--deadline", "2s"}, []string{
			"  down      calls wait for a connection for up to 1.999s of the 2s that they have; ", "The call ends after 1.999s with UNAVAILABLE: not_connected (1 attempt).\n",
		}},
		{[]string{method, "--succeed", "2"}, []string{"up to attempt 2, which is answered with OK", "with OK: succeeded (2 attempts).\n"}},
		{[]string{method, "--committed"}, []string{"the application sees headers of the first before that", "committed (1 attempt).\n"}},
		{[]string{method, "--crowded"}, []string{"no more calls may wait", "too_many_waiting (1 attempt).\n"}},
		{[]string{method, "--mode-off"}, []string{"and the mode is OFF", "mode_off (1 attempt).\n"}},
		{[]string{method, "--cancel", "50ms"}, []string{"the caller cancels the call after 50ms", "The call ends after 50ms with CANCELLED: cancelled (1 attempt).\n"}},
		{[]string{method, "--close", "50ms"}, []string{"the connection is closed after 50ms", "The call ends after 50ms with UNAVAILABLE: closed (1 attempt).\n"}},
		{[]string{list, "--hang"}, []string{
			"  hedges    one after the latency that 0.95 of the calls stay under, at least 1ms and at most 1s; after 100ms until that is known\n",
			"  codes     none is non-fatal", "│       1 │   0s │ slow │ 100ms │ a parallel attempt │",
		}},
		{[]string{list, "--hang", "--deadline", "1s", "--latency-unknown"}, []string{
			"no attempt is ever answered, and the method's latency is not known yet", "The call ends after 1s with DEADLINE_EXCEEDED: latency_unknown (1 attempt).\n",
		}},
	} {
		got, err := run(t, slowPolicy, append([]string{"-"}, one.args...)...)
		for _, want := range one.want {
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%q: %v: no %q in\n%s", one.args, err, want, got)
			}
		}
	}
}

func TestExplainJSON(t *testing.T) {
	t.Parallel()
	out, err := run(t, slowPolicy, "-", method, "--hang", "--deadline", "450ms", "--format", "json")
	var got explain.AnswerJSON
	if jsonErr := json.Unmarshal([]byte(out), &got); err != nil || jsonErr != nil {
		t.Fatalf("%v, %v\n%s", err, jsonErr, out)
	}
	want := []explain.EventJSON{
		{Attempt: 1, Sent: "0s", At: "200ms", Slow: true, Retry: true, Wait: "100ms", Least: "100ms", Longest: "100ms", Reason: policy.ReasonRetry},
	}
	if got.Method != method || !got.Safe || len(got.Settings["backoff"]) != 3 || !slices.Equal(got.Events, want) ||
		got.End == nil || *got.End != (explain.EndJSON{At: "450ms", Code: "DEADLINE_EXCEEDED", Reason: policy.ReasonDeadlineExceeded, Attempts: 2}) {
		t.Errorf("%+v", got)
	}
	out, err = run(t, slowPolicy, "-", method, "--hang", "--format", "json")
	if err != nil || strings.Contains(out, `"end"`) {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run(t, "refusedRetry: DENY", "-", method, "--format", "json")
	if err != nil || !strings.Contains(out, `"refusedRetry": "DENY"`) {
		t.Errorf("%v, %s", err, out)
	}
	out, err = run(t, `methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  idempotency: NONE
  sendCriticality: true
  refusedRetry: DENY
  retryPolicy:
    maxAttempts: 3
    initialBackoff: 0.1s
    maxBackoff: 1s
    backoffMultiplier: 2
    retryableStatusCodes: [UNKNOWN, RESOURCE_EXHAUSTED]
    codeOverrides: [{codes: [ABORTED], errorInfo: {reason: BUSY}, as: UNKNOWN}]
    perCode:
    - {codes: [RESOURCE_EXHAUSTED], errorInfo: {domain: acme.com, reason: FULL}, processed: NO}
    - {codes: [RESOURCE_EXHAUSTED], onlyWithServerDelay: true}
`, "-", method)
	for _, want := range []string{
		"a server that says it did not process the call is not believed (refusedRetry: DENY)",
		"RESOURCE_EXHAUSTED (FULL of acme.com): the server has not processed the call, which is retried even if undeclared",
		"RESOURCE_EXHAUSTED: retried only if the server names a delay", "ABORTED (BUSY of *) counts as UNKNOWN",
		"DEFAULT, sent with each call (sendCriticality)",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v, no %q in %s", err, want, out)
		}
	}
	out, err = run(t, "transparentRetry: DENY", "-", method, "--format", "json")
	if err != nil || !strings.Contains(out, `"strategy": "neither"`) || !strings.Contains(out, `"transparentRetry": "DENY"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for _, reason := range decision.Reasons() {
		out, err := run(t, "", "--reason", string(reason))
		if err != nil || !strings.HasPrefix(out, string(reason)) || !strings.Contains(out, "  means     ") || strings.ContainsAny(out, "`]") {
			t.Errorf("%s: %v\n%s", reason, err, out)
		}
	}
	if _, err := run(t, "", "--reason", "budget_exausted"); err == nil || !strings.Contains(err.Error(), "did you mean budget_exhausted?") {
		t.Error(err)
	}
	if out, err := run(t, "", "--reason", "followed", "--format", "json"); err != nil || !strings.Contains(out, `"question": "Has the newest attempt`) {
		t.Errorf("%v\n%s", err, out)
	}
}
