// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// RefundConfig is what a [Refund] is made from, in tokens with at most three decimals, which the budget
// keeps exactly. The fields are taken as they are, zeros too: start from [DefaultRefund] and change what
// differs.
type RefundConfig struct {
	Capacity    float64 // what the bucket holds, and starts with. 1 to 1,000,000
	RetryCost   float64 // of an extra attempt, except after a timeout. 0.001 to Capacity
	TimeoutCost float64 // of an extra attempt after a timeout. 0.001 to Capacity
	Success     float64 // what a call earns that succeeds at once. 0 to Capacity
}

// DefaultRefund is 500, 5, 10 and 1: the numbers of the AWS SDKs.
func DefaultRefund() RefundConfig {
	return RefundConfig{Capacity: 500, RetryCost: 5, TimeoutCost: 10, Success: 1}
}

// Refund is the token bucket of the AWS SDKs: an extra attempt takes its cost, and gives it back if it
// helped; a call that succeeds at once adds Success. It starts full, so a client may retry Capacity /
// RetryCost times before anything was earned, and then one time for so many calls that succeed. An
// outage that has emptied it stays without retries, since nothing succeeds. A kind unknown to it costs
// TimeoutCost; the time does not matter.
//
// With a bucket that is full, a call that succeeds only reads. The zero value is not usable: see
// [NewRefund].
type Refund struct {
	prices atomic.Pointer[prices]
	tokens atomic.Int64 // milli-tokens: 0 to the capacity
	denied atomic.Uint64
	reload sync.Mutex // one at a time
}

// prices are a RefundConfig in milli-tokens.
type prices struct{ capacity, retry, timeout, success int64 }

var _ Budget = (*Refund)(nil)

// NewRefund makes a full bucket. The error names every field that is out of bounds, its value and the
// bounds.
func NewRefund(c RefundConfig) (*Refund, error) {
	p, err := c.prices()
	if err != nil {
		return nil, err
	}
	b := new(Refund)
	b.prices.Store(p)
	b.tokens.Store(p.capacity)
	return b, nil
}

func (c RefundConfig) prices() (*prices, error) {
	most := c.Capacity
	if !(most >= 1 && most <= 1e6) {
		most = 1e6 // the capacity itself is reported
	}
	err := errors.Join(
		checkNumber("Capacity", c.Capacity, 1, 1e6, 3),
		checkNumber("RetryCost", c.RetryCost, 0.001, most, 3),
		checkNumber("TimeoutCost", c.TimeoutCost, 0.001, most, 3),
		checkNumber("Success", c.Success, 0, most, 3),
	)
	if err != nil {
		return nil, err
	}
	whole := func(tokens float64) int64 { return int64(math.Round(tokens * tokenInMilli)) }
	return &prices{whole(c.Capacity), whole(c.RetryCost), whole(c.TimeoutCost), whole(c.Success)}, nil
}

// Reload changes the config. The bucket stays as full as it was, in parts of its capacity. A config that
// is out of bounds is refused, and changes nothing.
func (b *Refund) Reload(_ time.Duration, c RefundConfig) error {
	fresh, err := c.prices()
	if err != nil {
		return err
	}
	b.reload.Lock()
	defer b.reload.Unlock()
	old := b.prices.Swap(fresh)
	rescale(&b.tokens, old.capacity, fresh.capacity)
	return nil
}

// Drain leaves nothing in the bucket.
func (b *Refund) Drain(time.Duration) { b.tokens.Store(0) }

// rescale keeps a bucket as full as it was when its size changes, rounded down.
func rescale(tokens *atomic.Int64, old, fresh int64) {
	for old != fresh {
		n := tokens.Load()
		if tokens.CompareAndSwap(n, min(int64(float64(n)*float64(fresh)/float64(old)), fresh)) {
			return
		}
	}
}

// Start does nothing: only what comes of a call counts.
func (*Refund) Start(time.Duration) {}

// Fail does nothing: only extra attempts cost.
func (*Refund) Fail(time.Duration) {}

// Withdraw takes the cost of c, if the bucket holds it.
func (b *Refund) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	for {
		cost, held := b.cost(c), b.tokens.Load()
		if held < cost {
			b.denied.Add(1)
			return Permit{}, false
		}
		if b.tokens.CompareAndSwap(held, held-cost) {
			return Permit{Charge: c, At: now, Cost: cost}, true
		}
	}
}

func (b *Refund) cost(c Charge) int64 {
	p := b.prices.Load()
	if c.Kind == AfterFailure || c.Kind == Hedge {
		return c.of(p.retry)
	}
	return c.of(p.timeout)
}

// Return gives the cost back.
func (b *Refund) Return(_ time.Duration, p Permit) { b.add(p.Cost) }

// Settle gives the cost back if the attempt helped.
func (b *Refund) Settle(_ time.Duration, p Permit, helped bool) {
	if helped {
		b.add(p.Cost)
	}
}

// Finish adds Success for a call that succeeded at once.
func (b *Refund) Finish(_ time.Duration, e End) {
	if e == AtOnce {
		b.add(b.prices.Load().success)
	}
}

// add fills the bucket up to its capacity, and writes only if that changes anything.
func (b *Refund) add(n int64) {
	for {
		old := b.tokens.Load()
		fresh := max(min(old+n, b.prices.Load().capacity), 0)
		if fresh <= old || b.tokens.CompareAndSwap(old, fresh) {
			return
		}
	}
}

// Balance is how many extra attempts [AfterFailure] the bucket pays for, with fractions.
func (b *Refund) Balance(time.Duration) float64 {
	return float64(b.tokens.Load()) / float64(b.prices.Load().retry)
}

// Tokens is what the bucket holds: 0 to Capacity, with three decimals.
func (b *Refund) Tokens() float64 { return float64(b.tokens.Load()) / tokenInMilli }

// Denied is how many withdrawals have been refused so far.
func (b *Refund) Denied() uint64 { return b.denied.Load() }
