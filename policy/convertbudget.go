// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"

func convertBudget(b *policyv1.Budget) BudgetSpec {
	spec := BudgetSpec{Name: b.GetName(), Scope: enum[Scope](b.GetScope())}
	switch {
	case b.GetRatio() != nil:
		spec.Ratio = convertRatio(b.GetRatio())
	case b.GetThrottle() != nil:
		spec.Throttle = convertThrottle(b.GetThrottle())
	case b.GetConcurrent() != nil:
		spec.Concurrent = convertConcurrent(b.GetConcurrent())
	case b.GetRefund() != nil:
		spec.Refund = convertRefund(b.GetRefund())
	}
	return spec
}

// convertRatio takes the defaults for what the file leaves out.
func convertRatio(r *policyv1.RatioBudget) *RatioSpec {
	spec := DefaultRatio()
	take(&spec.Percent, r.Percent)
	take(&spec.MinPerSecond, r.MinPerSecond)
	take(&spec.TimeoutCost, r.TimeoutCost)
	take(&spec.TimeoutBonus, r.TimeoutBonus)
	if r.GetWindow() != nil {
		spec.Window = r.GetWindow().AsDuration()
	}
	return &spec
}

func convertThrottle(t *policyv1.RetryThrottling) *ThrottleSpec {
	return &ThrottleSpec{MaxTokens: toInt(t.GetMaxTokens()), TokenRatio: t.GetTokenRatio()}
}

func convertConcurrent(c *policyv1.ConcurrentBudget) *ConcurrentSpec {
	spec := DefaultConcurrent()
	take(&spec.Percent, c.Percent)
	if c.Min != nil {
		spec.Min = toInt(c.GetMin())
	}
	return &spec
}

func convertRefund(r *policyv1.RefundBudget) *RefundSpec {
	spec := DefaultRefund()
	take(&spec.Capacity, r.Capacity)
	take(&spec.RetryCost, r.RetryCost)
	take(&spec.TimeoutCost, r.TimeoutCost)
	take(&spec.Success, r.Success)
	return &spec
}

// take puts what a file says in place of the default.
func take(field, said *float64) {
	if said != nil {
		*field = *said
	}
}
