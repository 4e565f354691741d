// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// budgets finds the balance that pays for a call.
type budgets struct {
	given map[string]budget.Budget     // by name, from WithBudget; fixed after New
	specs map[string]policy.BudgetSpec // by name, "" is the default; fixed after New

	throttled bool     // the file throttles every call, those without retries too
	seats     []seat   // one for each policy of the set, by its index
	table     sync.Map // place → budget.Budget
}

// seat remembers the balance that a policy's calls used first, which for most is the only one: a
// call then needs no look-up, and nobody writes.
type seat struct {
	policy *policy.Policy
	taken  atomic.Pointer[balance]
}

// balance is the budget for a target.
type balance struct {
	target string
	budget budget.Budget
}

// place is what one balance is for.
type place struct{ name, target, service string }

func newBudgets(set *policy.Set) *budgets {
	b := &budgets{
		given: map[string]budget.Budget{},
		specs: map[string]policy.BudgetSpec{},
		seats: make([]seat, len(set.Policies())),
	}
	for i, p := range set.Policies() {
		b.seats[i].policy = p
	}
	ratio := policy.DefaultRatio()
	b.specs[""] = policy.BudgetSpec{Ratio: &ratio}
	if t := set.Throttling(); t != nil {
		b.specs[""] = policy.BudgetSpec{Throttle: t}
		b.throttled = true
	}
	for _, spec := range set.Budgets() {
		b.specs[spec.Name] = spec
	}
	return b
}

// check makes one budget of each kind, so that a bad one is refused now and not in a call.
func (b *budgets) check() error {
	for name, spec := range b.specs {
		if _, err := build(spec); err != nil {
			return fmt.Errorf("interceptor: budget %q: %w", name, err)
		}
	}
	return nil
}

func build(spec policy.BudgetSpec) (budget.Budget, error) {
	switch {
	case spec.Throttle != nil:
		return budget.NewThrottle(budget.ThrottleConfig(*spec.Throttle))
	case spec.Concurrent != nil:
		return budget.NewConcurrent(budget.ConcurrentConfig(*spec.Concurrent))
	case spec.Refund != nil:
		return budget.NewRefund(budget.RefundConfig(*spec.Refund))
	default:
		return budget.NewRatio(budget.RatioConfig(*spec.Ratio))
	}
}

// payer returns the budget that pays for a call.
func (r *Retrier) payer(p *policy.Policy, cc *grpc.ClientConn, method string) budget.Budget {
	b, known := r.budgets.find(p, target(cc), method)
	if !known {
		r.warnUnknownBudget(p.Budget())
	}
	return b
}

// find returns the budget for a call; known is false if its policy names one that is not there.
func (b *budgets) find(p *policy.Policy, target, method string) (_ budget.Budget, known bool) {
	i := p.Index()
	if i < 0 || i >= len(b.seats) || b.seats[i].policy != p { // given with the call
		return b.lookup(p, target, method)
	}
	s := &b.seats[i]
	taken := s.taken.Load()
	if taken != nil && taken.target == target {
		return taken.budget, true
	}
	found, known := b.lookup(p, target, method)
	if taken == nil && b.specs[p.Budget()].Scope != policy.PerService {
		s.taken.CompareAndSwap(nil, &balance{target: target, budget: found})
	}
	return found, known
}

// lookup finds or makes the balance for a place; it stays for as long as the Retrier. A policy without
// retries needs none, unless the file throttles: then its successes and failures count too.
func (b *budgets) lookup(p *policy.Policy, target, method string) (_ budget.Budget, known bool) {
	name := p.Budget()
	if name == policy.NoBudget || p.MaxAttempts() < 2 && !b.throttled {
		return budget.Unlimited, true
	}
	if own := b.given[name]; own != nil {
		return own, true
	}
	spec, known := b.specs[name]
	if !known {
		name, spec = "", b.specs[""]
	}
	at := place{name: name}
	switch spec.Scope {
	case policy.PerTarget:
		at.target = target
	case policy.PerService:
		at.target, at.service = target, serviceOf(method)
	case policy.PerProcess:
	}
	if found, ok := b.table.Load(at); ok {
		return found.(budget.Budget), known //nolint:errcheck,forcetypeassert // only budgets are stored
	}
	made, err := build(spec)
	if err != nil { // New has refused it
		made = budget.Empty
	}
	found, _ := b.table.LoadOrStore(at, made)
	return found.(budget.Budget), known //nolint:errcheck,forcetypeassert // only budgets are stored
}

// serviceOf cuts "/service/method" to "service".
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}
