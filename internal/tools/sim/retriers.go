// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// retriers are one Retrier in each of the processes of one kind: what their calls share that follow one policy file.
type retriers struct {
	set     *decision.Set // nil: the calls follow none
	slots   []slots       // one for each process
	budgets map[budgetKey]*budgets
	methods map[methods.Key][]methods.Method // one for each process
}

// retriersKey says which calls share retriers.
type retriersKey struct {
	from, policy string // a fleet or a service, and the name of a policy file
	processes    int
}

func newRetriers(set *decision.Set, processes int) *retriers {
	r := &retriers{set: set, slots: make([]slots, processes), budgets: map[budgetKey]*budgets{}, methods: map[methods.Key][]methods.Method{}}
	most := defaults.MaxWaiting
	if set != nil {
		most = set.Config().MaxWaiting
	}
	for i := range r.slots {
		r.slots[i].most = int32(min(most, 1<<30))
	}
	return r
}

// slots are those of the calls of one process that wait for an attempt.
type slots struct{ taken, most int32 }

var _ attempts.Slots = (*slots)(nil)

// Enter implements [attempts.Slots].
func (s *slots) Enter() bool {
	if s.taken >= s.most {
		return false
	}
	s.taken++
	return true
}

// Leave implements [attempts.Slots].
func (s *slots) Leave() { s.taken-- }

// method is what the processes know of a method of a service.
func (r *retriers) method(target, name string) []methods.Method {
	key := methods.Key{Target: target, Method: name}
	if r.methods[key] == nil {
		r.methods[key] = make([]methods.Method, len(r.slots))
	}
	return r.methods[key]
}

// budgetKey says which calls of a process share a balance, as in the interceptor: those with one budget, as far as its
// scope reaches.
type budgetKey struct{ name, target, service string }

// budget finds what pays for the calls of a method of a service by a policy.
func (r *retriers) budget(p *decision.Policy, target, method string) (*budgets, error) {
	name := p.Budget()
	if r.set == nil || name == policy.NoBudget || p.MaxAttempts() < 2 && r.set.Config().Throttling == nil {
		return &budgets{unlimited: true}, nil
	}
	spec := policy.BudgetSpec{}
	if throttle := r.set.Config().Throttling; throttle != nil {
		spec.Config = *throttle
	}
	for _, named := range r.set.Config().Budgets {
		if named.Name == name {
			spec = named
		}
	}
	key := budgetKey{name: spec.Name}
	if spec.Scope != policy.ScopeProcess {
		key.target = target
	}
	if spec.Scope == policy.ScopeService {
		key.service, _, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	}
	if r.budgets[key] == nil {
		config := inside.Config(spec.Config)
		if _, err := balance.New(config, nil); err != nil {
			return nil, fmt.Errorf("sim: budget %q: %w", name, err)
		}
		r.budgets[key] = &budgets{config: config, list: make([]balance.Budget, len(r.slots))}
	}
	return r.budgets[key], nil
}

// budgets are the balances of one budget: one for each process, made when that makes its first call.
type budgets struct {
	config    balance.Config
	unlimited bool
	list      []balance.Budget
}

func (b *budgets) of(client int) balance.Budget {
	if b.unlimited {
		return balance.Unlimited
	}
	if b.list[client] == nil {
		b.list[client], _ = balance.New(b.config, nil) // it has been tried
	}
	return b.list[client]
}
