// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/lease"
)

// batch is the alternative scheme: each client keeps part of the pool's grants for the length of a lease, at least a token,
// and requests the next when that ends. A call takes a token if there is one.
type batch struct {
	world *world
	count tokens
	left  int64
	end   time.Duration
	known lease.Answer
	asked time.Duration
}

func newBatch(w *world) reserve {
	b := &batch{world: w, asked: w.now - lease.Length}
	b.ask()
	return b
}

// ask leases the next batch, and does so again when that ends. If the clients of a fleet would send more than 500 requests a
// second in all, they send fewer, like the reports of the other scheme.
func (b *batch) ask() {
	w := b.world
	length := max(lease.Length, time.Duration(b.known.Clients/500*float64(time.Second)))
	part := float64(w.pool.rate) * lease.Length.Seconds() / max(b.known.Clients, 1)
	r := lease.Request{Tokens: max(int64(part), 1e6), Least: 1e6, Covered: w.now - b.asked}
	b.asked = w.now
	w.after(length, b.ask)
	end := w.now + lease.Length
	w.pool.ask(r, &b.count.granted, func(a lease.Answer) { b.left, b.end, b.known = a.Tokens, end, a }, func() {})
}

// Take implements [balance.Lease].
func (b *batch) Take(now time.Duration, tokens int64) (balance.Draw, bool) {
	if b.Balance(now) < tokens {
		return balance.Draw{}, false
	}
	b.left -= tokens
	b.count.spent += tokens
	return balance.Draw{Number: 1, Tokens: tokens}, true
}

// Confirm implements [balance.Lease].
func (*batch) Confirm(time.Duration, balance.Draw) bool { return true }

// Return implements [balance.Lease].
func (b *batch) Return(_ time.Duration, d balance.Draw) { b.left += d.Tokens }

// Balance implements [balance.Lease].
func (b *batch) Balance(now time.Duration) int64 {
	if now >= b.end {
		return 0
	}
	return b.left
}

func (b *batch) tokens() *tokens { return &b.count }
