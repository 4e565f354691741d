// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"strings"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/accounts"
	"github.com/stagger-go/stagger/policy"
)

// budgetFor returns what pays for the calls of an entry: a balance, or [budget.Unlimited]. A policy without retries needs none, unless the
// file throttles: then its successes and failures count too.
func (r *Retrier) budgetFor(of *rules, p *policy.Policy, u accounts.User) budget.Budget {
	if unpaid(of, p) {
		return budget.Unlimited
	}
	b, full := r.budgets.Find(p.Budget(), u)
	if full {
		r.warnOnce(&fullTable, "", "", accounts.TableSize)
	}
	if b.Uncounted() {
		r.warnOnce(&manyCounts, "", "", accounts.MostCounted)
	}
	return b
}

// unpaid reports whether no budget has to hear of a policy's calls.
func unpaid(of *rules, p *policy.Policy) bool {
	return p.Budget() == "NONE" || p.MaxAttempts() < 2 && !of.throttled
}

// warnOfUnknownBudget warns that a policy names a budget that neither the file nor the program has.
func (r *Retrier) warnOfUnknownBudget(of *rules, p *policy.Policy) {
	name := p.Budget()
	_, declared := of.budgets[name]
	if !unpaid(of, p) && !declared && r.budgets.Given[name] == nil {
		r.warnOnce(&unknownBudget, name, name)
	}
}

// serviceOf returns the service of a method, "/service/method". With scope SERVICE, its balance pays for the call. If a proxy's callers make
// up services, the table bounds their balances.
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}

// checkBudget returns an error if no balance can have the config.
func checkBudget(name string, c budget.Config) error {
	if _, err := budget.New(c); err != nil {
		return fmt.Errorf("interceptor: budget %q: %w", name, err)
	}
	return nil
}
