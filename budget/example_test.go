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
	limit uint64

	mu     sync.Mutex // guards all below
	minute time.Time  // when it began
	spent  uint64
	state  budget.State
}

// Observe does nothing: calls earn nothing.
func (b *perMinute) Observe(time.Time, budget.Event) {}

func (b *perMinute) Withdraw(now time.Time, _ budget.Charge) (budget.Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.minute) >= time.Minute {
		b.minute, b.spent = now, 0
	}
	if b.spent >= b.limit {
		b.state.Denied++
		return budget.Permit{}, false
	}
	b.spent++
	b.state.Granted++
	return budget.Permit{Cost: b.minute.Unix()}, true // the minute that has paid
}

func (*perMinute) Settle(time.Time, budget.Permit, bool) {}

// Return returns the permit of an unsent attempt to the minute that has paid.
func (b *perMinute) Return(_ time.Time, p budget.Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Cost == b.minute.Unix() {
		b.spent--
	}
}

func (b *perMinute) State(now time.Time) budget.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	s.Capacity = float64(b.limit)
	if s.Balance = s.Capacity; now.Sub(b.minute) < time.Minute {
		s.Balance -= float64(b.spent)
	}
	return s
}

// Permits of unsent attempts are returned to the minute that has paid, and not to the next one.
func TestPerMinute(t *testing.T) {
	t.Parallel()
	b, now := &perMinute{limit: 1}, time.Now()
	old, _ := b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure})
	now = now.Add(time.Minute)
	if _, ok := b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure}); !ok {
		t.Fatal("the next minute pays for nothing")
	}
	b.Return(now, old)
	if _, ok := b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure}); ok {
		t.Error("two in a minute")
	}
}

// To use it, pass it to a Retrier: interceptor.WithBudget("orders", b), for the policies that name orders.
func ExampleBudget() {
	var b budget.Budget = &perMinute{limit: 5}
	outage(b, 100)
	fmt.Printf("%+v\n", b.State(time.Now()))
	// Output: {Balance:0 Capacity:5 Granted:5 Denied:95}
}

// outage makes calls fail, each of which asks for one more attempt.
func outage(b budget.Budget, calls int) {
	now := time.Now()
	for range calls {
		b.Observe(now, budget.EventCallStarted)
		b.Observe(now, budget.EventAttemptFailed)
		if p, ok := b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure}); ok {
			b.Settle(now, p, false)
		}
		b.Observe(now, budget.EventCallFailed)
	}
}

// A hundred calls fail in an outage. By default, a tenth of them may have another attempt, plus four from the reserve.
func ExampleNew() {
	for _, row := range []struct {
		name   string
		config budget.Config
	}{
		{"default", budget.Default()},
		{"ratio", budget.DefaultRatio()},
		{"concurrent", budget.ConcurrentConfig{Percent: 20, Min: 3}},
	} {
		b, err := budget.New(row.config)
		if err != nil {
			fmt.Println(err)
			return
		}
		outage(b, 100)
		s := b.State(time.Now())
		fmt.Printf("%s: %d extra attempts, %d denied\n", row.name, s.Granted, s.Denied)
	}
	// Output:
	// default: 14 extra attempts, 86 denied
	// ratio: 14 extra attempts, 86 denied
	// concurrent: 100 extra attempts, 0 denied
}

// The error has the allowed values for every field.
func ExampleNew_badConfig() {
	_, err := budget.New(budget.RatioConfig{Percent: 10, TimeoutCost: 0.5})
	fmt.Println(err)
	// Output:
	// budget: Window 0s: must be 1s to 60s
	// budget: TimeoutCost 0.5: must be 1 to 1000
}

// One of four backends is broken, and extra attempts go to another one: they succeed, pay for themselves, and the budget never
// runs dry. A missed deadline costs as much as an attempt after a timeout.
func ExampleDefaultRatio() {
	b, err := budget.New(budget.DefaultRatio())
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for i := range 1000 {
		b.Observe(now, budget.EventCallStarted)
		if i%4 == 0 {
			if p, ok := b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure}); ok {
				b.Settle(now, p, true)
			}
		}
		b.Observe(now, budget.EventCallSucceeded)
	}
	b.Observe(now, budget.EventDeadlineMissed) // costs 4
	s := b.State(now)
	fmt.Println(s.Denied, "denied, balance", s.Balance)
	// Output: 0 denied, balance 100
}

// With a hundred calls in flight, a fifth of them may have an extra attempt in flight.
func ExampleConcurrentConfig() {
	b, err := budget.New(budget.ConcurrentConfig{Percent: 20, Min: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for range 100 {
		b.Observe(now, budget.EventCallStarted)
	}
	fmt.Println(b.State(now).Balance)
	// Output: 20
}

// With ten tokens, extra attempts stop at five. A successful call adds a tenth.
func ExampleThrottleConfig() {
	b, err := budget.New(budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for range 5 {
		b.Observe(now, budget.EventAttemptFailed)
	}
	_, ok := b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure})
	fmt.Println(b.State(now).Balance, ok)

	b.Observe(now, budget.EventCallSucceeded)
	_, ok = b.Withdraw(now, budget.Charge{Cause: budget.CauseFailure})
	fmt.Println(b.State(now).Balance, ok)
	// Output:
	// 0 false
	// 0.1 true
}
