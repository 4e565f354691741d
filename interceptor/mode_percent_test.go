// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// percentages sets those of the file and of GetOrder's entry.
func percentages(c policy.Config, file, entry float64) policy.Config {
	c.Percent, c.Methods[0].Percent = &file, &entry
	return c
}

// always is the chance of everything.
func always(chance float64) interceptor.Option {
	return interceptor.WithRandom(func() float64 { return chance })
}

// The smaller percentage holds.
func TestPercent(t *testing.T) {
	for name, row := range map[string]struct {
		file, entry, chance float64
		retried             bool
	}{
		"drawn":             {50, 20, 0.1999, true},
		"not drawn":         {50, 20, 0.2, false},
		"by the file's":     {20, 50, 0.3, false},
		"nobody":            {100, 0, 0, false},
		"everybody":         {100, 100, 0.99999, true},
		"a small part":      {0.001, 100, 0.000009, true},
		"not so small ones": {0.001, 100, 0.00001, false},
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, percentages(config(plain()), row.file, row.entry), func(t *testing.T, s scene) {
					s.On(get, down(), text("2"))
					err := s.ended(t, desc)
					switch e := s.calls[0]; {
					case row.retried && (err != nil || s.Count(get) != 2 || e.Mode != policy.ModeEnforce):
						t.Errorf("%v, %d attempts, %+v; want the second one's answer", err, s.Count(get), e)
					case !row.retried && (reasonOf(err) != policy.ReasonModeOff || s.Count(get) != 1 || e.Mode != policy.ModeOff):
						t.Errorf("%v, %s, %d attempts, %+v; want no retry", err, reasonOf(err), s.Count(get), e)
					}
				}, always(row.chance))
			})
		}
	}
}

// Only calls that are drawn earn: three of ten.
func TestPercent_Earns(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeObserve} {
		t.Run(string(mode), func(t *testing.T) {
			bucket := budget.Default()
			bucket.Size, bucket.PerSuccess = 0, 1
			c := percentages(budgeted(policy.BudgetSpec{Scope: "PROCESS", Config: bucket}), 25, 100)
			c.Mode = mode
			synctest.Test(t, func(t *testing.T) {
				tenths := 0
				retrier := mustNew(t, mustSet(t, c), quiet, interceptor.WithRandom(func() float64 { tenths++; return float64(tenths-1) / 10 }))
				for range 10 {
					if err := retrier.Unary()(t.Context(), get, nil, nil, nil, answered); err != nil {
						t.Fatal(err)
					}
				}
				want := []interceptor.BudgetState{{Name: "orders", Kind: "bucket", Shadow: mode == policy.ModeObserve, Balance: 3, Capacity: 3}}
				if got := inUse(retrier); !slices.Equal(got, want) || tenths != 10 {
					t.Errorf("%+v after %d draws; want %+v", got, tenths, want)
				}
			})
		})
	}
}

// The file's modes for all calls, or for a method, apply to calls with any policy.
func TestMode_Sources(t *testing.T) {
	of := mustPolicy(t, policy.Spec{Retry: new(plain()), Idempotency: "ASSUME"})
	file := func(file, entry policy.Mode) policy.Config {
		return policy.Config{Mode: file, Methods: []policy.MethodConfig{{
			Names: []string{"/acme.orders.v1.OrderService/GetOrder"}, Spec: policy.Spec{Mode: entry},
		}}}
	}
	for name, row := range map[string]struct {
		file     policy.Config
		policy   *policy.Policy
		attempts int
	}{
		"a call's own":              {file("", ""), of, 4},
		"the file is off":           {file(policy.ModeOff, ""), of, 1},
		"the method's entry is off": {file("", policy.ModeOff), of, 1},
		"a trial of the file":       {file(policy.ModeObserve, ""), of, 1},
		"the call's own is off": {
			file("", ""), mustPolicy(t, policy.Spec{Retry: new(plain()), Idempotency: "ASSUME", Mode: policy.ModeOff}), 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.file, func(t *testing.T, s scene) {
				s.On(get, down())
				_, err := s.call(t.Context(), get, interceptor.Policy(row.policy))
				if s.Count(get) != row.attempts || row.attempts == 1 && reasonOf(err) != policy.ReasonModeOff {
					t.Errorf("%d attempts, %s; want %d", s.Count(get), reasonOf(err), row.attempts)
				}
			})
		})
	}
	t.Run("a service config", func(t *testing.T) {
		playLive(t, nil, func(t *testing.T, s scene) {
			s.On("*", down())
			l := dialLive(t, s, retries("3", ""))
			l.wants(t, "enforced", get, 3, policy.ReasonAttemptsExhausted)
			s.setMode(t, policy.ModeOff)
			l.wants(t, "off", get, 1, policy.ReasonModeOff)
		})
	})
}

func TestMode_SuccessAllocatesNothing(t *testing.T) {
	for _, row := range []struct {
		mode    policy.Mode
		percent float64
	}{{policy.ModeEnforce, 100}, {policy.ModeEnforce, 50}, {policy.ModeObserve, 100}, {policy.ModeOff, 100}} {
		retry := plain()
		retry.Budget = ""
		c := config(retry)
		c.Mode, c.Percent = row.mode, &row.percent
		unary := mustNew(t, mustSet(t, c), quiet).Unary()
		ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
		call := func() { _ = unary(ctx, get, nil, nil, nil, answered, opts...) }
		if n := testing.AllocsPerRun(1000, call); n > slack {
			t.Errorf("%v, %v %%: a call that succeeds at once allocates %v times; want 0", row.mode, row.percent, n)
		}
	}
}
