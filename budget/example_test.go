// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// perMinute is a custom budget: so many extra attempts per minute, whatever the number of calls.
type perMinute struct {
	limit int

	mu     sync.Mutex // guards all below
	minute time.Time  // when it began
	spent  int
}

// Observe does nothing: calls earn nothing.
func (b *perMinute) Observe(time.Time, budget.Event) {}

func (b *perMinute) Allow(now time.Time, c budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	if c == budget.CauseReconnected {
		return budget.Yes, nil // it costs nothing
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.minute) >= time.Minute {
		b.minute, b.spent = now, 0
	}
	if b.spent >= b.limit {
		return budget.No, nil
	}
	b.spent++
	paid := b.minute
	return budget.Yes, func(_ time.Time, how budget.End) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if how == budget.EndUnsent && paid.Equal(b.minute) { // the next minute is not to have more
			b.spent--
		}
	}
}

func TestPerMinute(t *testing.T) {
	t.Parallel()
	b, now := &perMinute{limit: 1}, time.Now()
	_, old := b.Allow(now, budget.CauseFailure)
	now = now.Add(time.Minute)
	if answer, _ := b.Allow(now, budget.CauseFailure); answer != budget.Yes {
		t.Fatal("the next minute pays for nothing")
	}
	old(now, budget.EndUnsent)
	if answer, _ := b.Allow(now, budget.CauseFailure); answer == budget.Yes {
		t.Error("two in a minute")
	}
}

// To use it, pass it to a Retrier, for the policies that name orders:
//
//	interceptor.WithBudget("orders", func(string) budget.Budget { return b })
func ExampleBudget() {
	fmt.Println(outage(&perMinute{limit: 5}), "extra attempts")
	// Output: 5 extra attempts
}

// outage makes a hundred calls fail, each of which asks for one more attempt. It returns how many were allowed.
func outage(b budget.Budget) (allowed int) {
	now := time.Now()
	for range 100 {
		b.Observe(now, budget.EventAttemptFailed)
		if answer, ended := b.Allow(now, budget.CauseFailure); answer == budget.Yes {
			allowed++
			if ended != nil {
				ended(now, budget.EndFailed)
			}
		}
		b.Observe(now, budget.EventCallFailed)
	}
	return allowed
}

// A hundred calls fail in an outage, and each asks for one more attempt.
func ExampleNew() {
	b, err := budget.New(budget.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outage(b), "extra attempts")
	// Output: 4 extra attempts
}
