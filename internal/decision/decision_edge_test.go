// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

func TestDecideEdges(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) {
		r.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.DeadlineExceeded}
	})
	t.Run("a timeout is no failure yet, listed or not", func(t *testing.T) {
		t.Parallel()
		call, out, b := decision.Call{Attempts: 1, Safe: true}, failed(codes.DeadlineExceeded), &purse{}
		out.TimedOut = true
		if d := p.Decide(&call, p.Classify(&out, noon), b, noon, 0); !d.Retry || b.failed != 0 {
			t.Errorf("%+v, %d failures; want a retry and none", d, b.failed)
		}
	})
	t.Run("a deadline ages past", func(t *testing.T) {
		t.Parallel()
		call, out := decision.Call{Attempts: 1, Safe: true, Deadline: time.Unix(-1<<40, 0)}, failed(codes.Unavailable)
		if d := p.Decide(&call, p.Classify(&out, noon), &purse{}, noon, 0); d.Reason != policy.ReasonDeadlineTooClose {
			t.Errorf("%+v; want deadline_too_close", d)
		}
	})
	t.Run("a refusal says what the server said", func(t *testing.T) {
		t.Parallel()
		call, out := decision.Call{Attempts: 1, Safe: true}, pushed(codes.Unavailable, "-1")
		if d := p.Decide(&call, p.Classify(&out, noon), &purse{}, noon, 0); !d.Pushback.Stop || d.Pushback.Source != decision.PushbackTrailer {
			t.Errorf("%+v; want the server's stop", d)
		}
	})
}

func TestDecideHedge(t *testing.T) {
	t.Parallel()
	slowAfter := func(then string) *decision.Policy {
		return mustPolicy(t, func(r *policy.RetrySpec) { r.PerAttemptTimeout, r.OnAttemptTimeout = time.Second, then })
	}
	hedged := compiled(t, policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 3, NonFatalStatusCodes: []codes.Code{codes.Unavailable}}})
	slow, cut := failed(codes.DeadlineExceeded), failed(codes.Unavailable)
	slow.TimedOut, cut.Resumes = true, true
	for name, row := range map[string]struct {
		policy  *decision.Policy
		out     decision.Outcome
		inPlace bool
		reason  policy.Reason
		delay   time.Duration
	}{
		"a slow attempt of a hedging policy":  {hedged, slow, false, policy.ReasonHedge, 0},
		"a failure of a hedging policy":       {hedged, failed(codes.Unavailable), false, policy.ReasonHedge, 0},
		"a hedging policy, of attempts alone": {hedged, failed(codes.Unavailable), true, policy.ReasonRetry, 0},
		"a cut stream of a hedging policy":    {hedged, cut, false, policy.ReasonHedge, 25 * ms},
		"a timeout beside":                    {slowAfter("HEDGE"), slow, false, policy.ReasonHedge, 100 * ms},
		"a timeout beside, of attempts alone": {slowAfter("HEDGE"), slow, true, policy.ReasonRetry, 100 * ms},
		"a timeout in place":                  {slowAfter("RETRY"), slow, false, policy.ReasonRetry, 100 * ms},
		"a failure with a timeout beside":     {slowAfter("HEDGE"), failed(codes.Unavailable), false, policy.ReasonRetry, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := decided(row.policy, &decision.Call{Attempts: 1, Safe: true, InPlace: row.inPlace}, row.out, &purse{})
			if !d.Retry || d.Reason != row.reason || d.Delay != row.delay {
				t.Errorf("%+v; want %s after %v", d, row.reason, row.delay)
			}
		})
	}
}

// A resumed stream that has received a message may use all of its attempts again.
func TestCallProgress(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, nil)
	for reset, want := range map[bool]time.Duration{false: 400 * ms, true: 100 * ms} {
		call := decision.Call{Attempts: 1, Safe: true}
		for range 2 {
			call.Sent(decided(p, &call, failed(codes.Unavailable), &purse{}))
		}
		call.Progress(reset)
		if d := decided(p, &call, failed(codes.Unavailable), &purse{}); call.Attempts != 1 || d.Delay != want {
			t.Errorf("reset %v: %d attempts, %v; want 1, %v", reset, call.Attempts, d.Delay, want)
		}
	}
}
