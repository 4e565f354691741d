// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// State is a reading of a Retrier.
type State struct {
	Policies *policy.Set // that the Retrier follows, with those that come with APIs
	Err      error       // what is wrong with the policy file since it was changed last; nil if the Retrier follows it
	// Warnings are what is not wrong but may surprise: those of the set, and policies that want more attempts than the Retrier
	// allows; then the problems of service configs that connections have received ([WithServiceConfig]), the first thousand,
	// and budgets that cannot be read. Notes are among them: their severity tells.
	Warnings []policy.Diagnostic

	// Switches are the modes that are set by hand: that of all calls, then those of services by their names. The strictest of
	// these, of the policies' and of an entry's holds.
	Switches []Switch

	Waiting int // how many calls wait between attempts now; the policies say how many may (maxWaiting)
	Budgets []BudgetState
	Pools   []PoolState // that budgets lease from ([WithFleet]), by name
}

// State reads the Retrier. To an [Option] that asks before the Retrier is made, it is the zero State. It is safe for concurrent use.
func (r *Retrier) State() State {
	rules, switches := r.rules.Load(), r.switches.Load()
	if rules == nil {
		return State{}
	}
	s := State{
		Policies: rules.set.Set, Warnings: r.warnings(rules.set),
		Switches: switches.list(),
		Waiting:  r.waitLimit.count(), Pools: r.pools(),
	}
	if err := r.refusal.Load(); err != nil {
		s.Err = *err
	}
	if r.serviceConfigs != nil {
		s.Warnings = append(s.Warnings, r.serviceConfigs.diagnostics.all()...)
	}
	var unread []policy.Diagnostic
	s.Budgets, unread = r.budgetStates()
	s.Warnings = append(s.Warnings, unread...)
	return s
}

// BudgetState is a reading of one balance of a budget.
type BudgetState struct {
	Name    string // in the policy file; "" is the default budget
	Kind    string // ratio, throttle, concurrent or refund; "" for budget.Unlimited and one of your own
	Source  string // who describes it, for two may have one name: "policies", "service_config" (a resolver), "option" ([WithBudget])
	Target  string // whose calls share it, in the form of CanonicalTarget; "" for all
	Service string // with scope SERVICE, else ""; "other" for services that nothing but calls name
	// Shadow is a balance of calls in mode OBSERVE, whose extra attempts are decided on and not sent. How a call ends by
	// itself settles it, so that Denied is an upper bound of what mode ENFORCE would refuse.
	Shadow bool

	// State is the balance itself. Granted and Denied are the withdrawals since the Retrier was made; of a budget from
	// [WithBudget] those of all that share it, since that was made. They never fall: if no call holds a balance and it has
	// nothing to remember, as of a target that is gone, its counts stay, and Gone says so. Of targets and services beyond
	// the first thousand, the balance of target "other" counts, which is always gone.
	budget.State
	Gone bool
}

// The sources of budgets.
const (
	budgetOfPolicies      = "policies"       // the policy file or set, or the default
	budgetOfServiceConfig = "service_config" // that a resolver has delivered
	budgetOfOption        = "option"         // [WithBudget]
)

// budgetStates reads the budgets of the Retrier that calls have used so far, in the order of name, target and
// service, the shadow of a balance after it; those from [WithBudget] have no target. It says which cannot be read.
func (r *Retrier) budgetStates() (list []BudgetState, unread []policy.Diagnostic) {
	now, counted := clock.Now(), r.countBalances()
	state := func(key budgetKey, w withdrawals) BudgetState {
		return BudgetState{
			Name: key.name, Kind: key.kind, Source: key.source, Target: key.target, Service: key.service, Shadow: key.shadow,
			State: budget.State{Granted: w.granted, Denied: w.denied},
		}
	}
	for name, b := range r.budgets.given {
		func() {
			defer func() { // one of the program's own may panic
				if v := recover(); v != nil {
					unread = append(unread, policy.Diagnostic{Severity: policy.SeverityWarning, Field: "budget", Value: name, Message: fmt.Sprintf("cannot be read, since it panics: %v", v)})
				}
			}()
			s := state(givenKey(name, b), withdrawalsOf(b))
			s.Balance, s.Capacity = b.Balance(now), b.Capacity(now)
			list = append(list, s)
		}()
	}
	r.budgets.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*keptBalance)
		s := state(key, counted[key]) // nothing if another one counts
		s.Balance, s.Capacity = kept.budget.Balance(now), kept.budget.Capacity(now)
		list = append(list, s)
		delete(counted, key)
		return true
	})
	for key, w := range counted {
		if w != (withdrawals{}) {
			s := state(key, w)
			s.Gone = true
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b BudgetState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Service, b.Service),
			compareBools(a.Shadow, b.Shadow), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Source, b.Source))
	})
	return list, unread
}

// givenKey names a budget from WithBudget.
func givenKey(name string, b balance.Budget) budgetKey {
	key := budgetKey{name: name, source: budgetOfOption}
	if own, ok := b.(balance.Reloadable); ok {
		key.kind = own.Kind()
	}
	return key
}

// compareBools has false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
