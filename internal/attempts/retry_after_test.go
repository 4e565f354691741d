// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// TestRetryAfter has the numbers; package interceptor's has the reasons.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const second = time.Second
	retry := policy.DefaultRetry()
	retry.Backoff.Max = 8 * second
	spent, err := balance.New(balance.RatioConfig{Percent: 0.0001, MinPerSecond: 0.1, Window: 10 * second, TimeoutCost: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := spent.Withdraw(0, balance.Charge{Kind: balance.KindFailure}); !ok {
		t.Fatal("the reserve pays for nothing")
	}
	again := func(change func(*Call)) Call { // it has ended after a second
		c := Call{reason: policy.ReasonAttemptsExhausted}
		c.set = &Settings{Policy: decision.New(policy.Spec{Retry: &retry}), Facts: &world{safe: true}, Budget: balance.Unlimited}
		change(&c)
		return c
	}
	for name, row := range map[string]struct {
		call              Call
		least, half, most time.Duration // by chance: 0, 1/2, 1
	}{
		"maxBackoff":                       {again(func(*Call) {}), 4 * second, 6 * second, 8 * second},
		"no policy, as of a call refused":  {again(func(c *Call) { c.set = &Settings{} }), second, 1500 * time.Millisecond, 2 * second},
		"no backoff":                       {again(func(c *Call) { c.set.Policy = decision.New(policy.Spec{}) }), second, 1500 * time.Millisecond, 2 * second},
		"the server's delay":               {again(func(c *Call) { c.floor = 3 * second }), 2 * second, 2 * second, 2 * second},
		"one that is over":                 {again(func(c *Call) { c.floor = second / 2 }), 4 * second, 6 * second, 8 * second},
		"the budget":                       {again(func(c *Call) { c.set.Budget = spent }), 9 * second, 10125 * time.Millisecond, 11250 * time.Millisecond},
		"the budget, longer than a delay":  {again(func(c *Call) { c.set.Budget, c.floor = spent, 3*second }), 9 * second, 10125 * time.Millisecond, 11250 * time.Millisecond},
		"the budget, shorter than a delay": {again(func(c *Call) { c.set.Budget, c.floor = spent, 61*second }), 60 * second, 60 * second, 60 * second},
		"worked on, and safe":              {again(func(c *Call) { c.worked = true }), 4 * second, 6 * second, 8 * second},
		"worked on, and not safe":          {again(func(c *Call) { c.worked, c.set.Facts = true, &world{} }), 0, 0, 0},
		"not worked on, and not safe":      {again(func(c *Call) { c.set.Facts = &world{} }), 4 * second, 6 * second, 8 * second},
		"the server forbids it":            {again(func(c *Call) { c.stopped, c.floor = true, 3*second }), 0, 0, 0},
		"another would not help":           {again(func(c *Call) { c.reason = policy.ReasonNonRetryable }), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for chance, want := range map[float64]time.Duration{0: row.least, 0.5: row.half, 1: row.most} {
				if got := row.call.retryAfter(Now{At: second, Chance: chance}); got != want {
					t.Errorf("by a chance of %v: %v; want %v", chance, got, want)
				}
			}
		})
	}
	tiny := retry
	tiny.Backoff.Max, tiny.Backoff.Initial = 1, 1
	c := again(func(c *Call) { c.set.Policy = decision.New(policy.Spec{Retry: &tiny}) })
	if got := c.retryAfter(Now{At: second}); got != 1 {
		t.Errorf("%v; want 1ns: 0 would forbid it", got)
	}
}
