// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

func TestDecideEdges(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *spec.Retry) {
		r.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.DeadlineExceeded}
	})
	t.Run("a timeout is no failure yet, listed or not", func(t *testing.T) {
		t.Parallel()
		out := failed(codes.DeadlineExceeded)
		out.TimedOut = true
		s := first(p, out)
		if d := decision.Decide(&s); !d.Retry || s.Fails() {
			t.Errorf("%+v, a failure: %v; want a retry and none", d, s.Fails())
		}
	})
	t.Run("a deadline ages past", func(t *testing.T) {
		t.Parallel()
		long := func(s *decision.Situation) { s.Left = math.MinInt64 }
		if d := decided(p, failed(codes.Unavailable), long); d.Reason != policy.ReasonDeadlineTooClose {
			t.Errorf("%+v; want deadline_too_close", d)
		}
	})
	t.Run("a refusal says what the server said", func(t *testing.T) {
		t.Parallel()
		refused := decided(p, pushed(codes.Unavailable, "5")).Refused(policy.ReasonBudgetExhausted)
		for _, d := range []decision.Decision{decided(p, pushed(codes.Unavailable, "-1")), refused} {
			if d.Retry || d.Delay != 0 || d.Pushback.Source != decision.PushbackTrailer {
				t.Errorf("%+v; want the server's word", d)
			}
		}
	})
	t.Run("a commitment says why", func(t *testing.T) {
		t.Parallel()
		full := func(s *decision.Situation) { s.Committed = decision.CommitBufferFull }
		if d := decided(p, failed(codes.Unavailable), full); d.Reason != policy.ReasonCommitted || d.Commit != decision.CommitBufferFull {
			t.Errorf("%+v; want committed by the full buffer", d)
		}
	})
}

func TestDecideHedge(t *testing.T) {
	t.Parallel()
	slowAfter := func(then string) *policy.Policy {
		return mustPolicy(t, func(r *spec.Retry) { r.PerAttemptTimeout, r.OnAttemptTimeout = time.Second, then })
	}
	hedged := policyOf(t, spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 3, NonFatalStatusCodes: []codes.Code{codes.Unavailable}}})
	slow, cut := failed(codes.DeadlineExceeded), failed(codes.Unavailable)
	slow.TimedOut, cut.Resumes = true, true
	for name, row := range map[string]struct {
		policy  *policy.Policy
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
			d := decided(row.policy, row.out, func(s *decision.Situation) { s.InSequence = row.inPlace })
			if !d.Retry || d.Reason != row.reason || d.Delay != row.delay {
				t.Errorf("%+v; want %s after %v", d, row.reason, row.delay)
			}
		})
	}
}
