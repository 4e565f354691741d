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

// decided returns the decision after an attempt of c that ended with out, with chance one half.
func decided(p *decision.Policy, c *decision.Call, out decision.Outcome, g decision.Gates) decision.Decision {
	return p.Decide(c, p.Classify(&out, noon), g, noon, 0.5)
}

func TestFirstRetryAtOnce(t *testing.T) {
	t.Parallel()
	atOnce := func(r *policy.RetrySpec) {
		r.FirstRetry = "AT_ONCE"
		r.PerAttemptTimeout = time.Second
		r.RetryableStatusCodes = append(r.RetryableStatusCodes, codes.Aborted)
		r.PerCode = []policy.CodeSpec{{Codes: []codes.Code{codes.Aborted}, Backoff: &policy.Backoff{Initial: 7 * ms, Max: time.Second, Multiplier: 2, Jitter: "NONE"}}}
	}
	for name, row := range map[string]struct {
		out   decision.Outcome
		sent  int
		delay time.Duration
	}{
		"after a failure":               {failed(codes.Unavailable), 1, 500 * time.Microsecond},
		"after a timeout":               {decision.Outcome{Status: failed(codes.DeadlineExceeded).Status, TimedOut: true}, 1, 500 * time.Microsecond},
		"after too much":                {failed(codes.ResourceExhausted), 1, 100 * ms},
		"a code with its own backoff":   {failed(codes.Aborted), 1, 7 * ms},
		"a delay that the server named": {pushed(codes.Unavailable, "40"), 1, 42 * ms},
		"the rest of a stream":          {decision.Outcome{Status: failed(codes.Unavailable).Status, Resumes: true}, 1, 100 * ms},
		"the second retry":              {failed(codes.Unavailable), 2, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &purse{}
			d := decided(mustPolicy(t, atOnce), &decision.Call{Attempts: row.sent, Safe: true}, row.out, g)
			if !d.Retry || d.Delay != row.delay || g.entered != 1 {
				t.Errorf("%+v, %d slots; want a retry after %v with a slot", d, g.entered, row.delay)
			}
		})
	}
	t.Run("then the backoff begins", func(t *testing.T) {
		t.Parallel()
		p, call := mustPolicy(t, atOnce), &decision.Call{Attempts: 1, Safe: true}
		for i, want := range []time.Duration{500 * time.Microsecond, 100 * ms, 200 * ms} {
			d := decided(p, call, failed(codes.Unavailable), &purse{})
			if d.Delay != want {
				t.Errorf("retry %d waits %v; want %v", i+1, d.Delay, want)
			}
			call.Sent(d)
		}
	})
	t.Run("no slot", func(t *testing.T) {
		t.Parallel()
		d := decided(mustPolicy(t, atOnce), &decision.Call{Attempts: 1, Safe: true}, failed(codes.Unavailable), &purse{full: true})
		if d.Reason != policy.ReasonTooManyWaiting {
			t.Errorf("%s; want %s", d.Reason, policy.ReasonTooManyWaiting)
		}
	})
}
