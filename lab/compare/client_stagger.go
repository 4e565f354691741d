// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// budgetRatio is stagger's default budget, with a reserve that stops no call that is compared.
const (
	budgetRatio = "ratio"
	noBudget    = policy.NoBudget
)

// retries is a stagger that follows the plan.
func retries(budgetName string, options ...interceptor.Option) func(plan) (setup, error) {
	return func(p plan) (setup, error) {
		return retrier(p, budgetName, policy.Spec{Retry: &policy.RetrySpec{
			MaxAttempts: attempts,
			Backoff:     policy.Backoff{Initial: p.backoff, Max: p.backoff, Multiplier: 1, Jitter: policy.JitterNone},
			Codes:       []codes.Code{codes.Unavailable},
			Budget:      budgetName,
		}}, options...)
	}
}

// staggerHedge hedges after a delay, or at the 95th percentile, which is never below it.
func staggerHedge(tail bool) func(plan) (setup, error) {
	return func(p plan) (setup, error) {
		delay := p.hedging
		if delay == atOnce {
			delay = 0 // after any other, calls are hedged once their usual latency is known
		}
		spec := &policy.HedgeSpec{MaxAttempts: 2, Delay: delay, Budget: budgetRatio}
		if tail {
			spec.Quantile = &policy.QuantileSpec{Quantile: 0.95, Min: p.hedging}
		}
		return retrier(p, budgetRatio, policy.Spec{Hedge: spec})
	}
}

func retrier(p plan, budgetName string, spec policy.Spec, options ...interceptor.Option) (setup, error) {
	config := policy.Config{
		MaxWaiting: 2 * p.waiting, // one target has half of them
		Methods: []policy.MethodConfig{{
			Names: []policy.Name{{Service: service, Method: callName}, {Service: service, Method: streamName}},
			Spec:  spec,
		}},
	}
	if budgetName == budgetRatio {
		ratio := budget.DefaultRatio()
		ratio.Percent, ratio.MinPerSecond = 100, 1e6
		config.Budgets = []policy.BudgetSpec{{Name: budgetRatio, Config: ratio}}
	}
	set, err := policy.NewSet(config)
	if err != nil {
		return setup{}, err
	}
	if p.replay > 0 {
		options = append(slices.Clip(options), interceptor.WithMaxReplayBytes(p.replay))
	}
	r, err := interceptor.New(set, options...)
	if err != nil {
		return setup{}, err
	}
	return setup{r.DialOptions(), r.Unary()}, nil
}
