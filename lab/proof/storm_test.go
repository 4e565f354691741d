// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

const method = "/proof.Service/Call"

// storm is the environment of many parallel calls.
type storm struct {
	spec    spec.Policy
	budget  string
	calls   int
	kinds   []kind
	mode    policy.Mode
	points  point // where foreign code panics
	swallow bool  // an inner interceptor keeps gRPC's options to itself
	rough   bool  // the server restarts, policies are reloaded, the mode changes
	closes  bool  // one of three connections, and the Retrier, are closed at the end
	unsafe  bool  // the policy names the service only, so no method is declared idempotent
	seed    uint64
}

func (s *storm) String() string {
	text := fmt.Sprintf("%d calls of %v, budget %s, mode %v, points %b, swallow %v, rough %v, closes %v, unsafe %v, seed %d",
		s.calls, s.kinds, s.budget, s.mode, s.points, s.swallow, s.rough, s.closes, s.unsafe, s.seed)
	if s.spec.Retry != nil {
		text += fmt.Sprintf("\nretries %+v", *s.spec.Retry)
	}
	if s.spec.Hedge != nil {
		text += fmt.Sprintf("\nhedges %+v", *s.spec.Hedge)
	}
	return text + fmt.Sprintf("\ntimeout %v, key %q, admission %v", s.spec.Timeout, s.spec.IdempotencyKey, s.spec.Admission)
}

func drawStorm(d *draws) *storm {
	s := &storm{
		budget: one(d, "unlimited", "throttle", "bucket"), spec: drawSpec(d), calls: 1 + d.below(40),
		kinds: one(d, []kind{unary}, []kind{serverStream}, []kind{clientStream}, []kind{bidiStream}, []kind{unary, serverStream, clientStream, bidiStream}),
		mode:  one(d, policy.ModeEnforce, policy.ModeEnforce, policy.ModeEnforce, policy.ModeEnforce, policy.ModeObserve, policy.ModeOff),
		seed:  uint64(d.below(256)), rough: d.odds(50), closes: d.odds(20), swallow: d.odds(15),
	}
	if d.odds(50) {
		s.points = point(d.below(256) | d.below(256)<<8)
	}
	if s.unsafe = d.odds(25); s.unsafe {
		s.spec.IdempotencyKey = ""
	}
	return s
}

// hasParallel reports whether a policy's attempts may be slow, so that others may run next to them.
func hasParallel(p spec.Policy) bool {
	return p.Hedge != nil || p.Retry != nil && p.Retry.PerAttemptTimeout > 0
}

// drawSpec draws a policy.
func drawSpec(d *draws) spec.Policy {
	var drawn spec.Policy
	switch what := one(d, "retry", "hedge", "beside", "in place", "none", "retry", "hedge", "beside"); what {
	case "none":
	case "hedge":
		drawn.Hedge = &spec.Hedge{MaxAttempts: 2 + d.below(3), HedgingDelay: one(d, 30*ms, 0, 5*ms), NonFatalStatusCodes: []codes.Code{codes.Unavailable, codes.Aborted}}
		if d.odds(25) {
			drawn.Hedge.Quantile, drawn.Hedge.MinDelay = 0.8, 5*ms
		}
	default:
		drawn.Retry = &spec.Retry{
			MaxAttempts: 2 + d.below(3), RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded},
			Backoff: backoff.Config{Initial: one(d, 10*ms, ms, 100*ms), Max: 200 * ms, Multiplier: 2, Jitter: "NONE"},
		}
		switch what {
		case "beside":
			drawn.Retry.PerAttemptTimeout = 60 * ms
		case "in place":
			drawn.Retry.PerAttemptTimeout, drawn.Retry.OnAttemptTimeout = 60*ms, "RETRY"
		}
	}
	if d.odds(25) {
		drawn.Timeout = 300 * ms
	}
	if d.odds(25) {
		drawn.IdempotencyKey = "key"
	}
	if d.odds(25) {
		drawn.Admission = "REFUSE"
	}
	if drawn.Retry != nil && d.odds(25) {
		drawn.Retry.MessageTimeout = one(d, 90*ms, 400*ms) // longer than perAttemptTimeout
	}
	return drawn
}

func (s *storm) set(t *testing.T, p spec.Policy) *policy.Set {
	t.Helper()
	name := method
	if s.unsafe {
		name = "/proof.Service/"
	}
	return testkit.Must(compiled.NewSet(spec.Config{MaxWaiting: 10, Methods: []spec.MethodConfig{{Names: []string{name}, Policy: p}}}))(t)
}

func (s *storm) newBudget(t *testing.T) budget.Budget {
	t.Helper()
	switch s.budget {
	case "bucket":
		return testkit.Must(budget.New(budget.BucketConfig{
			Size: 1000, PerSuccess: 0.5, SlowCost: 1, Refund: 1,
		}))(t)
	case "throttle":
		return testkit.Must(budget.New(budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.5}))(t)
	default:
		return budget.Unlimited
	}
}

// play plays a storm, and returns what it has left behind.
func (s *storm) play(t *testing.T) string {
	t.Helper()
	var found []string
	synctest.Test(t, func(t *testing.T) {
		w := s.start(t)
		testkit.NoError(t, w.retrier.SetMode(interceptor.ModeSwitch{Mode: s.mode}))
		ctx, stop := context.WithTimeout(t.Context(), time.Hour) // after this time, hanging calls
		var wg, others sync.WaitGroup
		if s.rough {
			others.Go(func() { w.rage(ctx, t) })
		}
		all := make([]*caller, s.calls)
		for g := range 6 {
			wg.Go(func() {
				for i := g; i < s.calls; i += 6 {
					all[i] = w.call(s.kinds[i%len(s.kinds)], fmt.Sprint("call", i))
					if s.closes && i == s.calls*2/3 {
						_ = w.conns[0].Close()
					}
					if s.closes && i == s.calls*4/5 {
						w.retrier.Close()
					}
				}
			})
		}
		wg.Wait()
		stop()
		others.Wait()
		time.Sleep(5 * time.Second) // for gRPC's reports on attempts whose options an inner interceptor withholds
		synctest.Wait()
		for _, c := range all {
			c.check()
		}
		w.check(t)
		found = w.list
	})
	return strings.Join(found, "\n")
}

func playStorm(t *testing.T, d *draws) string {
	t.Helper()
	s := drawStorm(d)
	return described(s, func() string { return s.play(t) })
}

func TestStorm(t *testing.T) { search(t, 60, 30, playStorm) }
