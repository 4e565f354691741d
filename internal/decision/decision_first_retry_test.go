// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

func TestFirstRetryAtOnce(t *testing.T) {
	t.Parallel()
	atOnce := func(r *spec.Retry) {
		r.FirstRetry = "AT_ONCE"
		r.PerAttemptTimeout = time.Second
		r.RetryableStatusCodes = append(r.RetryableStatusCodes, codes.Aborted)
		r.PerCode = []spec.Code{{Codes: []codes.Code{codes.Aborted}, Backoff: &backoff.Config{Initial: 7 * ms, Max: time.Second, Multiplier: 2, Jitter: "NONE"}}}
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
			d := decided(mustPolicy(t, atOnce), row.out, func(s *decision.Situation) { s.Attempts = row.sent })
			if !d.Retry || d.Delay != row.delay {
				t.Errorf("%+v; want a retry after %v", d, row.delay)
			}
		})
	}
	t.Run("then the backoff begins", func(t *testing.T) {
		t.Parallel()
		p := mustPolicy(t, atOnce)
		var backoff decision.Backoff
		for i, want := range []time.Duration{500 * time.Microsecond, 100 * ms, 200 * ms} {
			d := decided(p, failed(codes.Unavailable), func(s *decision.Situation) { s.Attempts, s.Backoff = i+1, backoff })
			if d.Delay != want {
				t.Errorf("retry %d waits %v; want %v", i+1, d.Delay, want)
			}
			backoff = d.Backoff
		}
	})
}
