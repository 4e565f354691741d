// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func retryAfterOf(t *testing.T, err error) time.Duration {
	t.Helper()
	e, ok := errors.AsType[*interceptor.Error](err)
	if !ok {
		t.Fatal(err)
	}
	return e.RetryAfter
}

// The error says how long the server has asked to wait, as far as the call has not waited for it.
func TestError_RetryAfter(t *testing.T) {
	once := plain()
	once.MaxAttempts = 2
	seconds := func(n string) testserver.Step { return down().Trailer(metadata.Pairs("retry-after", n)) }
	for name, row := range map[string]struct {
		script []testserver.Step
		leaves time.Duration // when the caller leaves; 0: it has a deadline of 1 s
		reason policy.Reason
		want   time.Duration
	}{
		"nobody has said anything":            {[]testserver.Step{down()}, 0, policy.ReasonAttemptsExhausted, 0},
		"beyond the deadline":                 {[]testserver.Step{down().Pushback("5000")}, 0, policy.ReasonDeadlineTooClose, 5 * time.Second},
		"RetryInfo":                           {[]testserver.Step{down().RetryInfo(7 * time.Second)}, 0, policy.ReasonDeadlineTooClose, 7 * time.Second},
		"retry-after":                         {[]testserver.Step{seconds("3")}, 0, policy.ReasonDeadlineTooClose, 3 * time.Second},
		"longer than maxPushback":             {[]testserver.Step{seconds("600")}, 0, policy.ReasonPushbackStop, 600 * time.Second},
		"longer than a day":                   {[]testserver.Step{seconds("9999999999999")}, 0, policy.ReasonPushbackStop, 24 * time.Hour},
		"never":                               {[]testserver.Step{down().Pushback("-1")}, 0, policy.ReasonPushbackStop, 0},
		"the last attempt":                    {[]testserver.Step{down().Times(1), down().Pushback("2000")}, 0, policy.ReasonAttemptsExhausted, 2 * time.Second},
		"the first one, which the call obeys": {[]testserver.Step{down().Pushback("100").Times(1), down()}, 0, policy.ReasonAttemptsExhausted, 0},
		"the rest, when the caller leaves":    {[]testserver.Step{down().Pushback("900")}, 400 * ms, policy.ReasonCancelled, 500 * ms},
	} {
		for kind, desc := range callKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, config(once), func(t *testing.T, s scene) {
					s.connect()
					s.On(get, row.script...)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if row.leaves > 0 {
						time.AfterFunc(row.leaves, cancel)
					}
					err := exchange(ctx, s.conn, desc, get)
					if got := retryAfterOf(t, err); got != row.want || reasonOf(err) != row.reason {
						t.Errorf("%v, %s; want %v, %s", got, reasonOf(err), row.want, row.reason)
					}
				})
			})
		}
	}
}

// The same for a method without a policy, also if nobody observes.
func TestError_RetryAfter_NoPolicy(t *testing.T) {
	t.Parallel()
	for source, step := range map[string]testserver.Step{
		"pushback":    down().Pushback("5000"),
		"RetryInfo":   down().RetryInfo(5 * time.Second),
		"retry-after": down().Trailer(metadata.Pairs("retry-after", "5")),
	} {
		for kind, desc := range callKinds {
			t.Run(source+", "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := mustNew(t, mustParse(t, "maxWaiting: 3"), quiet, interceptor.WithRandom(func() float64 { return 0 }))
					server := testserver.Start(t)
					server.On(get, step)
					err := exchange(t.Context(), server.Dial(t, r.DialOptions()...), desc, get)
					if got := retryAfterOf(t, err); got != 5*time.Second {
						t.Errorf("%v with %v", got, err)
					}
				})
			})
		}
	}
}

// A server's delay has a positive jitter, as the waits of calls have.
func TestError_RetryAfter_Jitter(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Pushback("5000"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.call(ctx, get)
		if got := retryAfterOf(t, err); got != 5250*ms {
			t.Errorf("%v", got)
		}
	}, interceptor.WithRandom(func() float64 { return 0.5 }))
}

// If the file's budget refuses the retry, the error says when time alone pays for one.
func TestError_RetryAfter_Budget(t *testing.T) {
	file := func(rule string) spec.Config {
		return compiled.OfSet(mustParse(t, `
budgets: [{name: ours, `+rule+`}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 2, initialBackoff: 0.001s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: ours}
`)).Config
	}
	// Two backoffs of 1 ms have passed since the bucket was full.
	bucket := "bucket: {size: 2, perSuccess: 0, refund: 0, refundSize: 0}"
	for name, row := range map[string]struct {
		rule   string
		random float64
		before time.Duration // since the bucket was emptied
		want   time.Duration
	}{
		"a bucket":                     {bucket, 0, 0, 149998 * ms},
		"with jitter":                  {bucket, 0.5, 0, 149998 * ms * 5 / 4},
		"which time has filled a part": {bucket, 0, 10 * time.Second, 139998 * ms},
		"time never adds one":          {"bucket: {size: 0.5, perSuccess: 0, refund: 0, refundSize: 0}", 0, 0, 0},
		"gRPC's throttling":            {"throttle: {maxTokens: 2, tokenRatio: 1}", 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, file(row.rule), func(t *testing.T, s scene) {
				s.On(get, down())
				for range 4 {
					_, _ = s.call(t.Context(), get)
					s.answers(t)
				}
				time.Sleep(row.before)
				_, err := s.call(t.Context(), get)
				if got := retryAfterOf(t, err); got != row.want || reasonOf(err) != policy.ReasonBudgetExhausted {
					t.Errorf("%v, %s; want %v", got, reasonOf(err), row.want)
				}
			}, interceptor.WithRandom(func() float64 { return row.random }))
		})
	}
	t.Run("a budget of the program's", func(t *testing.T) {
		given, err := budget.New(budget.BucketConfig{SlowCost: 1})
		if err != nil {
			t.Fatal(err)
		}
		play(t, file("bucket: {size: 2}"), func(t *testing.T, s scene) {
			s.On(get, down())
			_, err := s.call(t.Context(), get)
			if got := retryAfterOf(t, err); got != 0 || reasonOf(err) != policy.ReasonBudgetExhausted {
				t.Errorf("%v, %s", got, reasonOf(err))
			}
		}, interceptor.WithBudget("ours", func(string) budget.Budget { return given }))
	})
}
