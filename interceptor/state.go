// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// BudgetState is a reading of one balance of a budget.
type BudgetState struct {
	Name     string       // in the policy file; "" is the default budget
	Kind     string       // one of budget.Names; "" for one of your own from [WithBudget]
	Source   BudgetSource // who describes it: two may have one name
	Target   string       // whose calls share it, in the form of CanonicalTarget; "" for all
	Service  string       // with scope SERVICE, else ""; "other" for services that nothing but calls name
	Balance  float64      // extra attempts of the usual cost that would be granted now
	Capacity float64      // what the balance would be if nothing were spent
	Granted  uint64       // withdrawals that were granted since the balance was made
	Denied   uint64       // withdrawals that were refused since then; [Retrier.BudgetCounts] has those of all balances
	// Shadow is a balance of calls in mode OBSERVE, whose extra attempts are decided on and not sent. How a call ends by
	// itself settles it, so that Denied is an upper bound of what mode ENFORCE would refuse.
	Shadow bool
}

// BudgetSource is who describes a budget. Metrics print it as it stands here.
type BudgetSource string

// The sources.
const (
	BudgetOfPolicies      BudgetSource = "policies"       // the policy file or set, or the default
	BudgetOfServiceConfig BudgetSource = "service_config" // that a resolver has delivered
	BudgetOfOption        BudgetSource = "option"         // [WithBudget]
)

// Budgets reads the budgets of the Retrier that calls have used so far, in the order of name, target and
// service, the shadow of a balance after it; those from [WithBudget] have no target. Among many, a balance is missing that no call holds and that has
// nothing to remember, as of a target that is gone. It is safe for concurrent use.
func (r *Retrier) Budgets() []BudgetState {
	now := budget.Now()
	state := func(key budgetKey, b budget.Budget) BudgetState {
		return BudgetState{
			Name: key.name, Kind: key.kind, Source: key.source, Target: key.target, Service: key.service, Shadow: key.shadow,
			Balance: b.Balance(now), Capacity: b.Capacity(now), Granted: b.Granted(), Denied: b.Denied(),
		}
	}
	var list []BudgetState
	for name, b := range r.budgets.given {
		list = append(list, state(givenKey(name, b), b))
	}
	r.budgets.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*balance)
		list = append(list, state(key, kept.budget))
		return true
	})
	slices.SortFunc(list, func(a, b BudgetState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Service, b.Service),
			compareBools(a.Shadow, b.Shadow), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Source, b.Source))
	})
	return list
}

// givenKey names a budget from WithBudget.
func givenKey(name string, b budget.Budget) budgetKey {
	key := budgetKey{name: name, source: BudgetOfOption}
	switch b.(type) {
	case *budget.Ratio:
		key.kind = budget.RatioConfig{}.Name()
	case *budget.Throttle:
		key.kind = budget.ThrottleConfig{}.Name()
	case *budget.Concurrent:
		key.kind = budget.ConcurrentConfig{}.Name()
	case *budget.Refund:
		key.kind = budget.RefundConfig{}.Name()
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

// Pools reads the pools of the Retrier's fleet ([WithFleet]), by name; nil without one. Whoever else uses the fleet
// reads the same. It is safe for concurrent use.
func (r *Retrier) Pools() []budget.PoolState { return r.budgets.leases.Pools() }

// PolicyState describes the policies that a Retrier follows.
type PolicyState struct {
	Source string    // the policy file, as it was given; "" if the set was made from Go values
	Hash   string    // of its text ([policy.Set.Hash]); "" if the set was made from Go values
	Since  time.Time // when the Retrier began to follow it

	Set         *policy.Set // the policies, with those that come with APIs
	MaxAttempts int         // the cap over the policies' maxAttempts (maxAttemptsLimit, [WithMaxAttempts])
	MaxWaiting  int         // how many calls may wait between attempts at a time
	Mode        policy.Mode // of all calls: the stricter of the set's and SetMode's; entries may have a stricter one
	SetMode     policy.Mode // what [Retrier.SetMode] has set for all calls; more in [Retrier.Switches]
}

// Policy describes the policies that the Retrier follows now. What is surprising in them is in [Retrier.Warnings];
// why a newer file is not followed says [Retrier.Err].
func (r *Retrier) Policy() PolicyState {
	rules, set := r.rules.Load(), r.switches.Load().all.Mode
	return PolicyState{
		Source: rules.set.Source(), Hash: rules.set.Hash(), Since: rules.since,
		Set: rules.set.Set, MaxAttempts: cmp.Or(r.maxAttempts, rules.set.Config().MaxAttemptsLimit), MaxWaiting: int(r.waitLimit.slots.Load()),
		Mode: max(rules.set.Mode(), set), SetMode: set,
	}
}

// Waiting is how many calls of the Retrier wait in a backoff now.
func (r *Retrier) Waiting() int { return r.waitLimit.count() }
