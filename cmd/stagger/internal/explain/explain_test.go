// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const method = "/acme.orders.v1.OrderService/GetOrder"

// TestExplainedIsWhatTheServerSees plays calls against a server, in virtual time: the attempts arrive at the explained times, and the call
// ends as explained. No two events coincide.
func TestExplainedIsWhatTheServerSees(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	retry := func(change func(*spec.Retry)) spec.Policy {
		r := &spec.Retry{
			MaxAttempts: 4, RetryableStatusCodes: []codes.Code{codes.Unavailable}, Budget: "NONE",
			Backoff: backoff.Config{Initial: 101 * ms, Max: 307 * ms, Multiplier: 2, Jitter: "FULL"},
		}
		change(r)
		return spec.Policy{Timeout: 3 * time.Second, Retry: r}
	}
	jitter := func(j backoff.Jitter) spec.Policy { return retry(func(r *spec.Retry) { r.Backoff.Jitter = j }) }
	plain := jitter("NONE")
	short, unsafe := plain, plain
	short.Timeout, unsafe.Idempotency = 250*ms, "NONE"
	timeout := retry(func(r *spec.Retry) { r.PerAttemptTimeout = 83 * ms })
	inPlace := retry(func(r *spec.Retry) { r.PerAttemptTimeout, r.OnAttemptTimeout = 83*ms, "RETRY" })
	hedges := spec.Policy{Timeout: 3 * time.Second, Hedge: &spec.Hedge{
		MaxAttempts: 3, HedgingDelay: 97 * ms, NonFatalStatusCodes: []codes.Code{codes.Unavailable}, Budget: "NONE",
	}}
	endless := retry(func(*spec.Retry) {})
	endless.Timeout = 0
	lone := timeout
	lone.Timeout, lone.Idempotency = 0, "NONE"
	patient, failing, waiting := endless, endless, endless
	patient.MaxConnectionWait = new(300 * ms)
	failing.WaitForReady, waiting.WaitForReady = new(false), new(true)
	type question = explain.Question
	for name, row := range map[string]struct {
		spec spec.Policy
		q    question
	}{
		"no jitter":                {plain, question{}},
		"full jitter":              {jitter("FULL"), question{}},
		"equal jitter":             {jitter("EQUAL"), question{}},
		"decorrelated jitter":      {jitter("DECORRELATED"), question{}},
		"proportional jitter":      {jitter("PROPORTIONAL"), question{}},
		"more than the cap":        {retry(func(r *spec.Retry) { r.MaxAttempts = 7 }), question{}},
		"the entry's timeout":      {short, question{}},
		"the caller's deadline":    {plain, question{Deadline: 320 * ms}},
		"not idempotent":           {unsafe, question{}},
		"another code":             {plain, question{Code: codes.NotFound}},
		"pushback: stop":           {plain, question{Pushback: "-1"}},
		"pushback: at once":        {plain, question{Pushback: "0"}},
		"pushback: a delay":        {plain, question{Pushback: "70"}},
		"pushback: too long":       {plain, question{Pushback: "400000"}},
		"pushback: a sign":         {plain, question{Pushback: "+5"}},
		"slow failures":            {plain, question{Latency: 211 * ms}},
		"timeouts, then failures":  {timeout, question{Latency: 211 * ms}},
		"timeouts, in place":       {inPlace, question{Latency: 211 * ms}},
		"timeouts without an end":  {timeout, question{Hang: true}},
		"in place without an end":  {inPlace, question{Hang: true}},
		"hedges":                   {hedges, question{Latency: 211 * ms}},
		"hedges of quick failures": {hedges, question{Latency: 5 * ms}},
		"hedges, a fatal failure":  {hedges, question{Latency: 150 * ms, Code: codes.NotFound}},
		"hedges without an end":    {hedges, question{Hang: true}},
		"the default timeout":      {endless, question{Hang: true, DefaultTimeout: time.Second}},
		"the default, and slow":    {lone, question{Hang: true, DefaultTimeout: time.Second}},
		"down":                     {endless, question{Down: true}},
		"down, a timeout":          {short, question{Down: true}},
		"down, a deadline":         {endless, question{Down: true, Deadline: time.Second}},
		"down, a wait of its own":  {patient, question{Down: true}},
		"down, no wait":            {failing, question{Down: true}},
		"down, gRPC waits":         {waiting, question{Down: true, Deadline: time.Second}},
		"down, one attempt":        {spec.Policy{}, question{Down: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := row.q
			q.MaxAttempts, q.Method, q.Code = defaults.MaxAttempts, method, cmp.Or(q.Code, codes.Unavailable)
			set := testkit.Must(compiled.NewSet(spec.Config{
				DefaultTimeout: q.DefaultTimeout, Methods: []spec.MethodConfig{{Names: []string{method}, Policy: row.spec}},
			}))(t)
			a := explain.Explain(methods.Describe(set), q, []float64{0.5})
			synctest.Test(t, func(t *testing.T) {
				srv := testserver.Start(t)
				retrier := testkit.Must(interceptor.New(set, interceptor.WithRandom(func() float64 { return 0.5 }),
					interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
				conn := srv.Dial(t, retrier.DialOptions()...)
				if q.Down {
					srv.Down()
					conn.Connect()
					synctest.Wait()
				} else {
					answerFast(t, srv, conn, retrier)
				}
				before := len(srv.Attempts())
				step := testserver.Fail(q.Code).Delay(q.Latency)
				if q.Pushback != "" {
					step = step.Pushback(q.Pushback)
				}
				if q.Hang {
					step = testserver.Hang()
				}
				srv.On("*", step)
				ctx := t.Context()
				if q.DefaultTimeout == 0 {
					limited, cancel := context.WithTimeout(ctx, cmp.Or(q.Deadline, time.Hour))
					defer cancel()
					ctx = limited
				}
				began := time.Now()
				callErr := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
				took := time.Since(began)
				synctest.Wait()
				got := a.Sent // a server that is down sees none
				if !q.Down {
					got = nil
				}
				for _, s := range srv.Attempts()[before:] {
					got = append(got, s.Time.Sub(began))
				}
				if fmt.Sprint(got) != fmt.Sprint(a.Sent) || took != a.At {
					t.Errorf("the server saw %v, and the call took %v; explained were %v and %v\n%s", got, took, a.Sent, a.At, a.Text())
				}
				e, ok := errors.AsType[*interceptor.Error](callErr)
				if !ok || e.Reason != a.End.Reason || e.Attempts != a.End.Attempts || codename.Of(status.Code(callErr)) != a.EndCode() {
					t.Errorf("ended with %v; explained was %s, %s", callErr, a.EndCode(), a.End.Reason)
				}
			})
		})
	}
}

// TestExplainRangeOfWaits has a deadline that leaves no time for the longest wait.
func TestExplainRangeOfWaits(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`)))(t)
	q := explain.Question{MaxAttempts: defaults.MaxAttempts, Method: method, Code: codes.Unavailable, Deadline: 120 * time.Millisecond}
	a := explain.Explain(methods.Describe(set), q, []float64{0.7, 0.9})
	var got []string
	for _, e := range a.Events {
		got = append(got, fmt.Sprint(e.Decision.Reason, " ", e.Decision.Delay, " of ", e.Least, " to ", e.Longest.Round(time.Millisecond)))
	}
	want := []string{"retry 70ms of 0s to 100ms", "deadline_too_close 0s of 0s to 200ms"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q; want %q", got, want)
	}
	if s := a.Text(); !strings.Contains(s, "0s and 200ms  deadline_too_close") {
		t.Error(s)
	}
}

// answerFast makes ten calls of one attempt, which are answered at once: afterwards, an attempt may follow a slow one.
func answerFast(t *testing.T, srv *testserver.Server, conn *grpc.ClientConn, r *interceptor.Retrier) {
	t.Helper()
	srv.On("*", testserver.OK())
	testkit.NoError(t, r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}))
	for range 10 {
		testkit.NoError(t, conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	testkit.NoError(t, r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeEnforce}))
}

const slowPolicy = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, ABORTED],
    jitter: NONE, perAttemptTimeout: 0.2s, onAttemptTimeout: RETRY, maxPushback: 9s, perCode: [{codes: [ABORTED], maxAttempts: 2, onlyWithServerDelay: true}]}
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s, hedgingQuantile: {quantile: 0.95, max: 1s}}
- name: [{service: acme.orders.v1.OrderService, method: CountOrders}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE}
  admission: REFUSE
- name: [{service: acme.orders.v1.OrderService, method: WaitForOrders}]
  waitForReady: true
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0s}
`

func TestExplainFlags(t *testing.T) {
	t.Parallel()
	list, waits := strings.Replace(method, "GetOrder", "ListOrders", 1), strings.Replace(method, "GetOrder", "WaitForOrders", 1)
	for _, one := range []struct {
		args []string
		want []string
	}{
		{[]string{method}, []string{
			"  codes     ABORTED, UNAVAILABLE\n", "  backoff   100ms, × 2 each time, up to 1s; jitter NONE\n", "            ABORTED: with the settings of perCode\n",
			"  timeouts  200ms for an attempt, then another one in its place (RETRY)",
			"  pushback  obeyed up to 9s; ", "The call ends after 300ms with UNAVAILABLE: attempts_exhausted (3 attempts).\n",
		}},
		{[]string{strings.Replace(method, "GetOrder", "CountOrders", 1)}, []string{
			"  backoff   none before the first retry (AT_ONCE; within 1 ms), then 100ms, × 2 each time, up to 1s; jitter FULL\n",
			"  admission REFUSE: a call that can't be served before its deadline isn't sent\n", "0s and 1ms    retry", "0s and 100ms  retry",
			"  slow      a response is slow, and very slow, if it took over a quarter of the call's time to the deadline\n" +
				"            while all of the method's last 10 responses were very slow, nothing is retried",
		}},
		{[]string{method, "--hang"}, []string{
			"If no attempt ever gets a response, and the budget pays for each:", "another attempt in its place", "The call does not end",
			"At 10 calls a second (--rate), if all attempts hang for a minute after one of fast responses: 601 calls send ", " in all.\n",
		}},
		{[]string{method, "--hang", "--rate", "0.5"}, []string{"At 0.5 calls a second (--rate), "}},
		{[]string{method, "--hang", "--deadline", "1.5s"}, []string{"The call ends after 1.5s with DEADLINE_EXCEEDED: deadline_exceeded (3 attempts).\n"}},
		{[]string{list, "--hang", "--deadline", "0.15s"}, []string{"  2        100ms  running  150ms  the call ends                      deadline_exceeded\n"}},
		{[]string{method, "--latency", "1ms"}, []string{"  1        0s     UNAVAILABLE  1ms    another attempt   100ms"}},
		{[]string{method, "--budget-empty"}, []string{"budget    default, which is empty\n", "budget_exhausted (1 attempt).\n"}},
		{[]string{method, "--hang", "--deadline", "1.5s", "--slow-everywhere"}, []string{
			"no attempt ever gets a response, and all of the method's last 10 responses were very slow", "The call ends after 1.5s with DEADLINE_EXCEEDED: slow_everywhere (1 attempt).\n",
		}},
		{[]string{method, "--hang", "--deadline", "1.5s", "--not-proven-fast"}, []string{
			"no attempt ever gets a response, and 3 of the method's last 10 responses were slow", "The call ends after 1.5s with DEADLINE_EXCEEDED: not_proven_fast (1 attempt).\n",
		}},
		{[]string{method}, []string{
			"  budget    default\n            a bucket of ", " retries, or of what the successes of the last 5s add", "a successful call adds 0.1; ", "an attempt after a slow one 4, or 1 if a later one was answered", "after 5 failed attempts in a row, retries wait for an answer",
			"  slow      a response is slow if it took over ", ", and very slow if also over a quarter of the call's time to the deadline\n" +
				"            another attempt replaces a slow one only while at most 2 of the method's last 10 responses were slow; of fewer, at most a fifth\n" +
				"            while all of the method's last 10 responses were very slow, nothing is retried",
		}},
		{[]string{list}, []string{
			"another attempt follows a slow one only while at most 2 of the method's last 10 responses were slow, after 5 or more\n",
		}},
		{[]string{waits, "--down"}, []string{"The call does not end"}}, // and the command does, though the call looks for a connection forever
		{[]string{method, "--down"}, []string{
			"If no connection can be made, from the call's start on:", "another attempt, once connected", "The call ends after 3s with UNAVAILABLE: not_connected (1 attempt).\n",
		}},
		{[]string{method, "--down", "--deadline", "2s"}, []string{
			"The call ends after 1.999s with UNAVAILABLE: not_connected (1 attempt).\n",
		}},
		{[]string{list, "--hang"}, []string{
			"  hedges    one every 100ms\n            after the latency that 0.95 of the calls stay under, once that is known\n",
			"  codes     none is non-fatal", "  attempt  sent   state    at     then ", "  1        0s     slow     100ms  a parallel attempt",
			"  2        100ms  running         it runs on", // each attempt that was sent has a row
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
}

// The cap on attempts doesn't hide that they run in parallel.
func TestCappedAttempts(t *testing.T) {
	t.Parallel()
	const file = "methodConfig: [{name: [{service: a.B, method: C}], hedgingPolicy: {maxAttempts: 9, hedgingDelay: 1s}}]"
	out, err := run(t, file, "-", "a.B/C")
	if err != nil || !strings.Contains(out, "attempts  9, cut to 5 (maxAttemptsLimit allows more) in parallel (hedging)\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
