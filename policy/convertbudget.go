// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"

func convertBudget(b *policyv1.Budget) BudgetSpec {
	spec := BudgetSpec{Name: b.GetName(), Scope: scopes[b.GetScope()]}
	switch {
	case b.GetRatio() != nil:
		spec.Ratio = convertRatio(b.GetRatio())
	case b.GetThrottle() != nil:
		spec.Throttle = convertThrottle(b.GetThrottle())
	}
	return spec
}

// convertRatio takes the defaults for what the file leaves out.
func convertRatio(r *policyv1.RatioBudget) *RatioSpec {
	spec := DefaultRatio()
	if r.Percent != nil {
		spec.Percent = r.GetPercent()
	}
	if r.MinPerSecond != nil {
		spec.MinPerSecond = r.GetMinPerSecond()
	}
	if r.TimeoutCost != nil {
		spec.TimeoutCost = r.GetTimeoutCost()
	}
	if r.TimeoutBonus != nil {
		spec.TimeoutBonus = r.GetTimeoutBonus()
	}
	if r.GetWindow() != nil {
		spec.Window = r.GetWindow().AsDuration()
	}
	return &spec
}

func convertThrottle(t *policyv1.RetryThrottling) *ThrottleSpec {
	return &ThrottleSpec{MaxTokens: toInt(t.GetMaxTokens()), TokenRatio: t.GetTokenRatio()}
}
