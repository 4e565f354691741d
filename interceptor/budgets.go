// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules.
type budgets struct {
	given map[string]budget.Budget // by name, from WithBudget; fixed after New
	table sync.Map                 // place → budget.Budget
}

// place is what one balance is for.
type place struct {
	name            string
	kind            budgetKind
	target, service string
}

// payer returns the budget that pays for a call.
func (r *Retrier) payer(of *rules, p *policy.Policy, cc *grpc.ClientConn, method string) budget.Budget {
	b, known := r.budgets.find(of, p, target(cc), method)
	if !known {
		r.warnUnknownBudget(p.Budget())
	}
	return b
}

// find returns the budget for a call; known is false if its policy names one that is not there.
func (b *budgets) find(r *rules, p *policy.Policy, target, method string) (_ budget.Budget, known bool) {
	i := p.Index()
	if i < 0 || i >= len(r.seats) || r.seats[i].policy != p { // given with the call, or just reloaded
		return b.lookup(r, p, target, method)
	}
	s := &r.seats[i]
	taken := s.taken.Load()
	if taken != nil && taken.target == target {
		return taken.budget, true
	}
	found, known := b.lookup(r, p, target, method)
	if taken == nil && r.specs[p.Budget()].Scope != policy.ScopeService {
		s.taken.CompareAndSwap(nil, &balance{target: target, budget: found})
	}
	return found, known
}

// lookup finds or makes the balance for a place; it stays for as long as the Retrier. A policy without
// retries needs none, unless the file throttles: then its successes and failures count too.
func (b *budgets) lookup(r *rules, p *policy.Policy, target, method string) (_ budget.Budget, known bool) {
	name := p.Budget()
	if name == policy.NoBudget || p.MaxAttempts() < 2 && !r.throttled {
		return budget.Unlimited, true
	}
	if own := b.given[name]; own != nil {
		return own, true
	}
	name, spec, known := r.spec(name)
	at := place{name: name, kind: kindOfBudget(spec)}
	switch spec.Scope {
	case policy.ScopeProcess:
	case policy.ScopeService:
		at.target, at.service = target, serviceOf(method)
	default:
		at.target = target
	}
	if found, ok := b.table.Load(at); ok {
		r.settle(at, found.(budget.Budget), spec) //nolint:errcheck,forcetypeassert // only budgets are stored
		return found.(budget.Budget), known       //nolint:errcheck,forcetypeassert // only budgets are stored
	}
	made, err := build(spec)
	if err != nil { // New has refused it
		made = budget.Empty
	}
	if r.empty[name] || r.delivered() && b.others(at) {
		drain(made)
	}
	found, _ := b.table.LoadOrStore(at, made)
	return found.(budget.Budget), known //nolint:errcheck,forcetypeassert // only budgets are stored
}

// serviceOf cuts "/service/method" to "service".
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}
