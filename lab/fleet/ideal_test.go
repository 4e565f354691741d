// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/lease"
)

// ideal is a pool that every call reaches without delay, and that gets unused tokens back. No network has one.
type ideal struct {
	bucket lease.Bucket
	rate   int64
	back   int64 // given
}

func newIdeal(w *world) reserve {
	if w.ideal == nil {
		w.ideal = &ideal{rate: w.pool.rate}
	}
	return w.ideal
}

// Take implements [balance.Lease].
func (p *ideal) Take(now time.Duration, tokens int64) (balance.Draw, bool) {
	if p.back >= tokens {
		p.back -= tokens
		return balance.Draw{Number: 1, Tokens: tokens}, true
	}
	a := p.bucket.AnswerRequest(now, p.rate, lease.Request{Tokens: tokens, Least: tokens})
	return balance.Draw{Number: 1, Tokens: tokens}, a.Tokens == tokens
}

// Confirm implements [balance.Lease].
func (*ideal) Confirm(time.Duration, balance.Draw) bool { return true }

// Return implements [balance.Lease]. The pool holds at most one second's tokens.
func (p *ideal) Return(_ time.Duration, d balance.Draw) { p.back = min(p.back+d.Tokens, p.rate) }

// Balance implements [balance.Lease].
func (*ideal) Balance(time.Duration) int64 { return 0 }

func (*ideal) tokens() *tokens { return &tokens{} }
