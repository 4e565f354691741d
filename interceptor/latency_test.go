// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// byQuantile hedges at the 95th percentile, after a second until that is known.
func byQuantile() policy.Config {
	return hedged(func(h *policy.HedgeSpec) {
		h.Delay = time.Second
		h.Quantile, h.MinDelay, h.MaxDelay = 0.95, 5*ms, 400*ms
	})
}

// train makes calls that take as long as they are told to.
func (s scene) train(t *testing.T, calls int, took func(i int) time.Duration) {
	t.Helper()
	for i := range calls {
		s.On(get, text("quick").Delay(took(i)))
		must.Get(s.call(t.Context(), get))(t)
	}
}

// A hedge that wins cuts the first attempt short. Were only winners counted, the quantile would creep
// down until every call is hedged.
func TestLatency_HedgesDoNotPullItDown(t *testing.T) {
	play(t, byQuantile(), func(t *testing.T, s scene) {
		s.train(t, 100, func(i int) time.Duration { return time.Duration(i%100+1) * ms })
		var slow atomic.Int64
		s.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			if len(a.Metadata.Get("grpc-previous-rpc-attempts")) > 0 {
				return text("hedge").Delay(ms)
			}
			return text("first").Delay(time.Duration(slow.Add(1)%100+1) * ms)
		}))
		s.Reset()
		for range 2000 {
			must.Get(s.call(t.Context(), get))(t)
		}
		synctest.Wait()
		if extra := s.Count(get) - 2000; extra < 40 || extra > 160 {
			t.Errorf("%d hedges for 2000 calls; want about 5 %%", extra)
		}
	})
}

// within makes a call of some kind that has a second, and returns how it has ended.
func within(t *testing.T, conn *grpc.ClientConn, desc *grpc.StreamDesc) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return exchange(ctx, conn, desc, get)
}

func repeat(took time.Duration, n int) []time.Duration {
	return slices.Repeat([]time.Duration{took}, n)
}

// While all answers of the last 3 s took much of their calls' time, failures are not retried: of any policy, by every driver.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	hasty := plain()
	hasty.PerAttemptTimeout = 900 * ms
	beside := config(plain())
	for i := range beside.Methods {
		beside.Methods[i].IdempotencyKey = "key"
	}
	for policyName, c := range map[string]policy.Config{"plain": config(plain()), "with a timeout": config(hasty), "with a key": beside} {
		for kind, desc := range callKinds {
			for name, row := range map[string]struct {
				took   []time.Duration // of the answers before
				pause  time.Duration
				reason policy.Reason
			}{
				"all":                   {repeat(400*ms, 5), 0, policy.ReasonSlowEverywhere},
				"one in the last 3 s":   {repeat(400*ms, 1), 3 * time.Second, policy.ReasonSlowEverywhere},
				"none since then":       {repeat(400*ms, 5), 3*time.Second + 1, policy.ReasonAttemptsExhausted},
				"four of five":          {append(repeat(400*ms, 4), 10*ms), 0, policy.ReasonAttemptsExhausted},
				"a tenth of their time": {repeat(100*ms, 5), 0, policy.ReasonAttemptsExhausted},
			} {
				t.Run(policyName+"/"+kind+"/"+name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						s := testserver.Start(t)
						r := mustNew(t, mustSet(t, c), quiet, interceptor.WithRandom(func() float64 { return 0 }))
						conn := s.Dial(t, r.DialOptions()...)
						for _, took := range append([]time.Duration{10 * ms}, row.took...) {
							s.On(get, text("").Delay(took))
							if err := within(t, conn, desc); err != nil {
								t.Fatal(err)
							}
						}
						time.Sleep(row.pause)
						s.On(get, testserver.Fail(codes.Unavailable))
						if err := within(t, conn, desc); reasonOf(err) != row.reason {
							t.Errorf("%v (%s); want %s", err, reasonOf(err), row.reason)
						}
					})
				})
			}
		}
	}
}

// Long answers to callers with 60 ms end no retries of one with 10 s.
func TestLongAnswers_HurriedCallers(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]policy.Reason{
		60 * ms: policy.ReasonSlowEverywhere, time.Second: policy.ReasonSlowEverywhere, 10 * time.Second: policy.ReasonAttemptsExhausted,
	} {
		t.Run(given.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := testserver.Start(t)
				retry := plain()
				retry.Backoff.Initial = ms
				r := mustNew(t, mustSet(t, config(retry)), quiet, interceptor.WithRandom(func() float64 { return 0 }))
				conn := s.Dial(t, r.DialOptions()...)
				answer := func(given time.Duration, step testserver.Step) error {
					s.On(get, step)
					ctx, cancel := context.WithTimeout(t.Context(), given)
					defer cancel()
					return exchange(ctx, conn, nil, get)
				}
				for _, took := range append([]time.Duration{10 * ms}, repeat(30*ms, 5)...) {
					if err := answer(60*ms, text("").Delay(took)); err != nil {
						t.Fatal(err)
					}
				}
				if err := answer(given, testserver.Fail(codes.Unavailable)); reasonOf(err) != want {
					t.Errorf("%v (%s); want %s", err, reasonOf(err), want)
				}
			})
		})
	}
}
