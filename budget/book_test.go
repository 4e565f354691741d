// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// book is a budget and the permits that it gave, in their order.
type book struct {
	budget.Budget

	permits []budget.Permit
}

// action reports whether what it asked for was granted.
type action func(b *book, now time.Duration) bool

func look(*book, time.Duration) bool { return true }

func charge(k budget.Kind) budget.Charge { return budget.Charge{Kind: k} }

func ending(ok bool) budget.End {
	if ok {
		return budget.EndAtOnce
	}
	return budget.EndFailed
}

func start(n int) action {
	return func(b *book, now time.Duration) bool {
		for range n {
			b.Start(now)
		}
		return true
	}
}

func withdraw(k budget.Kind) action {
	return func(b *book, now time.Duration) bool {
		p, ok := b.Withdraw(now, charge(k))
		if ok {
			b.permits = append(b.permits, p)
		}
		return ok
	}
}

func drop(i int) action {
	return func(b *book, now time.Duration) bool { b.Return(now, b.permits[i]); return true }
}

func settle(i int, helped bool) action {
	return func(b *book, now time.Duration) bool { b.Settle(now, b.permits[i], helped); return true }
}

func finish(n int, e budget.End) action {
	return func(b *book, now time.Duration) bool {
		for range n {
			b.Finish(now, e)
		}
		return true
	}
}

func refund(i int) action {
	return func(b *book, now time.Duration) bool { b.Settle(now, b.permits[i], true); return true }
}

type row struct {
	at      float64 // seconds
	do      action
	balance float64 // afterwards
	ok      bool
}

// run sees the balance and the count of denials after every row.
func run(t *testing.T, b budget.Budget, rows []row) {
	t.Helper()
	book, denied := &book{Budget: b}, b.Denied()
	for i, r := range rows {
		if ok := r.do(book, at(r.at)); ok != r.ok {
			t.Fatalf("row %d: granted %v; want %v", i, ok, r.ok)
		}
		if !r.ok {
			denied++
		}
		if got := b.Balance(at(r.at)); got != r.balance {
			t.Fatalf("row %d: balance %v; want %v", i, got, r.balance)
		}
		if got := b.Denied(); got != denied {
			t.Fatalf("row %d: denied %d; want %d", i, got, denied)
		}
	}
}
