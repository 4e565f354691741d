// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"sync"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// ledger is a budget that checks that every permit is returned once, and every call finished once.
type ledger struct {
	budget.Budget
	*faults

	mu      sync.Mutex
	last    int64 // the last permit granted
	open    map[int64]budget.Permit
	running int
}

func (l *ledger) Observe(now time.Time, e budget.Event) {
	l.mu.Lock()
	switch e {
	case budget.EventCallStarted:
		l.running++
	case budget.EventCallSucceeded, budget.EventCallRecovered, budget.EventCallFailed:
		l.running--
	default:
	}
	l.mu.Unlock()
	l.Budget.Observe(now, e)
}

func (l *ledger) Withdraw(now time.Time, k budget.Kind, factor float64) (budget.Permit, bool) {
	p, ok := l.Budget.Withdraw(now, k, factor)
	if !ok {
		return p, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.open[l.last] = p
	return budget.Permit{Cost: l.last}, true
}

func (l *ledger) Settle(now time.Time, p budget.Permit, o budget.Outcome) {
	l.Budget.Settle(now, l.take(p), o)
}

func (l *ledger) take(p budget.Permit) budget.Permit {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.open[p.Cost]
	if !ok {
		l.add("a permit is given back twice", "permit %d", p.Cost)
	}
	delete(l.open, p.Cost)
	return own
}

// left returns the number of permits not returned, and of calls not finished.
func (l *ledger) left() (permits, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open), l.running
}
