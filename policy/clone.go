// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
)

// clone copies what a spec points to, so that who wrote it cannot change a policy afterwards.
func (s Spec) clone() Spec {
	s.WaitForReady = cloned(s.WaitForReady)
	s.MaxRequestBytes = cloned(s.MaxRequestBytes)
	s.MaxResponseBytes = cloned(s.MaxResponseBytes)
	if s.Hedge = cloned(s.Hedge); s.Hedge != nil {
		s.Hedge.Quantile = cloned(s.Hedge.Quantile)
	}
	if s.Retry = cloned(s.Retry); s.Retry != nil {
		s.Retry.Overrides = slices.Clone(s.Retry.Overrides)
		s.Retry.PerCode = slices.Clone(s.Retry.PerCode)
		for i := range s.Retry.PerCode {
			s.Retry.PerCode[i].Backoff = cloned(s.Retry.PerCode[i].Backoff)
		}
	}
	return s
}

// cloneBudgets copies budgets, and names a scope that is left at zero.
func cloneBudgets(budgets []BudgetSpec) []BudgetSpec {
	budgets = slices.Clone(budgets)
	for i := range budgets {
		budgets[i].Scope = cmp.Or(budgets[i].Scope, ScopeTarget)
	}
	return budgets
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
