// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/frombudget"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// BudgetSpec describes one budget.
type BudgetSpec struct {
	Name   string
	Scope  Scope
	Config budget.Config // of one of package budget's kinds: [budget.RatioConfig], or another
}

// NoBudget as a budget's name means no limit: "budget: NONE".
const NoBudget = "NONE"

// Scope decides which calls share one balance of a budget. "" means [ScopeTarget].
type Scope string

// The scopes.
const (
	ScopeProcess Scope = "PROCESS" // all calls of the Retrier
	ScopeTarget  Scope = "TARGET"  // all calls to one target, over all connections
	ScopeService Scope = "SERVICE" // all calls to one service of one target
)

func convertBudget(b *policyv1.Budget) BudgetSpec {
	spec := BudgetSpec{Name: b.GetName(), Scope: word[Scope](b.GetScope())}
	switch {
	case b.GetRatio() != nil:
		spec.Config = convertRatio(b.GetRatio())
	case b.GetThrottle() != nil:
		spec.Config = convertThrottle(b.GetThrottle())
	case b.GetConcurrent() != nil:
		spec.Config = convertConcurrent(b.GetConcurrent())
	case b.GetRefund() != nil:
		spec.Config = convertRefund(b.GetRefund())
	}
	return spec
}

// convertRatio converts a ratio budget, with defaults for missing keys.
func convertRatio(r *policyv1.RatioBudget) budget.RatioConfig {
	c := budget.DefaultRatio()
	take(&c.Percent, r.Percent)
	take(&c.MinPerSecond, r.MinPerSecond)
	take(&c.TimeoutCost, r.TimeoutCost)
	take(&c.TimeoutBonus, r.TimeoutBonus)
	take(&c.HedgeCost, r.HedgeCost)
	if r.GetWindow() != nil {
		c.Window = r.GetWindow().AsDuration()
	}
	return c
}

func convertThrottle(t *policyv1.RetryThrottling) budget.ThrottleConfig {
	return budget.ThrottleConfig{MaxTokens: toInt(t.GetMaxTokens()), TokenRatio: t.GetTokenRatio()}
}

func convertConcurrent(b *policyv1.ConcurrentBudget) budget.ConcurrentConfig {
	c := budget.ConcurrentConfig(balance.DefaultConcurrent())
	take(&c.Percent, b.Percent)
	if b.Min != nil {
		c.Min = toInt(b.GetMin())
	}
	return c
}

func convertRefund(r *policyv1.RefundBudget) budget.RefundConfig {
	c := budget.RefundConfig(balance.DefaultRefund())
	take(&c.Capacity, r.Capacity)
	take(&c.RetryCost, r.RetryCost)
	take(&c.TimeoutCost, r.TimeoutCost)
	take(&c.Success, r.Success)
	return c
}

// take replaces a default by the file's value, if there is one.
func take(field, said *float64) {
	if said != nil {
		*field = *said
	}
}

func checkBudgets(report *document.Report, budgets []BudgetSpec) {
	names := map[string]bool{}
	for i, b := range budgets {
		path := document.Item("budgets", i)
		switch {
		case b.Name == "":
			report.Errorf(path+".name", nil, "must be the name that policies use")
		case strings.EqualFold(b.Name, NoBudget):
			report.Errorf(path+".name", b.Name, "must not be NONE, which means no budget")
		case names[b.Name]:
			report.Errorf(path+".name", b.Name, "another budget has that name")
		}
		names[b.Name] = true
		checkWord(report, path+".scope", b.Scope, policyv1.BudgetScope(0))
		switch config := frombudget.Config(b.Config); {
		case b.Config == nil:
		case config != nil:
			checkBudget(report, path+"."+config.Name(), config)
			continue
		default:
			report.Errorf(path, nil, "must have a config of package budget, and not a pointer to one")
			continue
		}
		if !slices.ContainsFunc(balance.Names(), func(kind string) bool { return !report.Whole(path + "." + kind) }) {
			report.Errorf(path, nil, "must have a kind: %s", document.OneOf(balance.Names()))
		}
	}
}

// checkBudget reports the errors of package budget, with the keys of the file.
func checkBudget(report *document.Report, path string, c balance.Config) {
	err := c.Check()
	if err == nil {
		return
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		report.Errorf(path, nil, "%v", err)
		return
	}
	for _, err := range joined.Unwrap() {
		if f, ok := errors.AsType[*balance.FieldError](err); ok {
			report.Errorf(path+"."+keyOf(f.Field), verbatim(f.Value), "%s", f.Message)
		}
	}
}

// keyOf returns the key of a config's field: maxTokens for MaxTokens.
func keyOf(field string) string {
	runes := []rune(field)
	runes[0] = unicode.ToLower(runes[0])
	return string(runes)
}

// verbatim is a value that messages show unchanged.
type verbatim string
