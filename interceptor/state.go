// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/accounts"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// State describes a Retrier at one moment.
type State struct {
	Policies *policy.Set // in use
	Err      error       // of the last change of the policy file if the Retrier refused it, otherwise nil
	// Warnings include notes, which have their own severity. They are about the policy set, methods that don't exist, and budgets that
	// can't be read.
	Warnings []policy.Diagnostic

	// Switches are the modes set by hand: that of all calls, then those of services, ordered by name. The strictest of
	// these, the policies' and an entry's mode applies.
	Switches []ModeSwitch

	// DefaultTimeout is that of unary calls without a deadline, from the policies or [WithDefaultTimeout]; 0: none.
	// WithoutDeadline counts the unary calls so far that had a policy with extra attempts, and neither a deadline nor a timeout.
	DefaultTimeout  time.Duration
	WithoutDeadline uint64

	Waiting   Waiting // calls that wait between attempts now
	Budgets   []BudgetState
	Admission []AdmissionState // of the methods with admission that have had calls, ordered by target and method
}

// State returns the current state of the Retrier. It is the zero State for a nil or zero Retrier, and inside an [Option]. It is safe for
// concurrent use.
func (r *Retrier) State() State {
	if !r.made() {
		return State{}
	}
	rules, switches := r.rules.Load(), r.switches.Load()
	s := State{
		Policies: rules.set.Set, Warnings: rules.set.Warnings(),
		Switches:       switches.list(),
		DefaultTimeout: r.defaultTimeoutBy(rules), WithoutDeadline: r.withoutDeadline.Load(),
		Waiting: r.waitLimit.waitingCalls(), Admission: r.admissions(),
	}
	if err := r.refusal.Load(); err != nil {
		s.Err = *err
	}
	var unread []policy.Diagnostic
	s.Budgets, unread = r.budgetStates()
	s.Warnings = append(s.Warnings, unread...)
	return s
}

// AdmissionState describes the admission of a method at one moment.
type AdmissionState struct {
	Target, Method string
	Running        int    // attempts without a response yet
	Refused        uint64 // calls, so far
	WouldRefuse    uint64 // calls that were sent because their mode isn't ENFORCE: an upper bound, since each lengthens the queue
}

// BudgetState describes one balance of a budget at one moment.
type BudgetState struct {
	Name    string // in the policy file; "" is the default budget
	Kind    string // bucket or throttle; "" for one from [WithBudget]
	Target  string // of the calls that share it, in the form of CanonicalTarget; "" for all
	Service string // with scope SERVICE, else ""

	// Balance is how many retries would be allowed now, and Capacity is what Balance would be if nothing were spent. Both are infinite for
	// budget.Unlimited, and for a custom budget that isn't a budget.Stater.
	Balance, Capacity float64
	// Granted counts the extra attempts that were sent and have ended, and Refused those that were refused, since the Retrier was
	// made. They never decrease: if an unused balance is dropped, as for a former target, its counts stay, and Dropped is true.
	// Targets and services beyond the first thousand count as target "other", which is always dropped.
	Granted, Refused uint64
	Dropped          bool
}

// budgetStates returns readings of the budgets that calls have used, ordered by name, target and
// service. unread reports the ones that can't be read.
func (r *Retrier) budgetStates() (list []BudgetState, unread []policy.Diagnostic) {
	now := time.Now()
	balances, counted := r.budgets.All()
	state := func(key accounts.Key, w accounts.Withdrawals) BudgetState {
		return BudgetState{
			Name: key.Name, Kind: key.Kind, Target: key.Target, Service: key.Service,
			Granted: w.Granted, Refused: w.Refused,
		}
	}
	read := func(key accounts.Key, w accounts.Withdrawals, b budget.Budget) {
		wrong := func(problem string) {
			unread = append(unread, policy.Diagnostic{Severity: document.SeverityWarning, Field: "budget", Value: key.Name, Message: "cannot be read, since it " + problem})
		}
		defer func() { // a user's budget may panic
			if v := recover(); v != nil {
				wrong(fmt.Sprintf("panics: %v", v))
			}
		}()
		s, is := state(key, w), budget.State{Balance: math.Inf(1), Capacity: math.Inf(1)}
		if b, readable := b.(budget.Stater); readable {
			is = b.State(now)
		}
		s.Balance, s.Capacity = is.Balance, is.Capacity
		oneIsNotFinite := math.IsNaN(0 * s.Balance * s.Capacity)
		if oneIsNotFinite && !math.IsInf(s.Capacity, 1) {
			wrong("has a balance or a capacity that is not finite")
			s.Balance, s.Capacity = 0, 0
		}
		list = append(list, s)
	}
	for key, balance := range balances {
		read(key, counted[key], balance.Budget) // counts are zero if another one has them
		delete(counted, key)
	}
	for key, w := range counted {
		if w != (accounts.Withdrawals{}) {
			s := state(key, w)
			s.Dropped = true
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b BudgetState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Kind, b.Kind))
	})
	return list, unread
}
