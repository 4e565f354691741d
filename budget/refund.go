// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"time"
)

// Refund is the token bucket of the AWS SDKs: an extra attempt takes its cost, and gives it back if it
// helped; a call that succeeds at once adds Success. It starts full, so a client may retry Capacity /
// RetryCost times before anything was earned, and then one time for so many calls that succeed. An
// outage that has emptied it stays without retries, since nothing succeeds. A kind unknown to it costs
// TimeoutCost; the time does not matter.
//
// With a bucket that is full, a call that succeeds only reads. The zero value is not usable: see
// [NewRefund].
type Refund struct {
	bucket bucket[prices]
	denied atomic.Uint64
}

var _ Budget = (*Refund)(nil)

// NewRefund makes a full bucket. The error names every field that is out of bounds, its value and the
// bounds.
func NewRefund(c RefundConfig) (*Refund, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	b := new(Refund)
	b.bucket.fill(c.milli())
	return b, nil
}

// Reload changes the config. The bucket stays as full as it was, in parts of its capacity. A permit from
// before gives back what was charged, or what the same would cost now if that is less. A config that is
// out of bounds is refused, and changes nothing.
func (b *Refund) Reload(_ time.Duration, c RefundConfig) error {
	if err := c.check(); err != nil {
		return err
	}
	b.bucket.become(c.milli())
	return nil
}

// Drain leaves nothing in the bucket.
func (b *Refund) Drain(time.Duration) {
	for {
		if h, tokens := b.bucket.look(); h.change(tokens, -tokens) {
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
		h, tokens := b.bucket.look()
		cost := h.settings.cost(c)
		if tokens < cost {
			b.denied.Add(1)
			return Permit{}, false
		}
		if h.change(tokens, -cost) {
			return Permit{Charge: c, At: now, Cost: cost}, true
		}
	}
}

// Return gives the cost back.
func (b *Refund) Return(_ time.Duration, p Permit) {
	for {
		h, tokens := b.bucket.look()
		if h.change(tokens, max(min(p.Cost, h.settings.cost(p.Charge)), 0)) {
			return
		}
	}
}

// Settle gives the cost back if the attempt helped.
func (b *Refund) Settle(now time.Duration, p Permit, helped bool) {
	if helped {
		b.Return(now, p)
	}
}

// Finish adds Success for a call that succeeded at once.
func (b *Refund) Finish(_ time.Duration, e End) {
	for e == EndAtOnce {
		if h, tokens := b.bucket.look(); h.change(tokens, h.settings.success) {
			return
		}
	}
}

// Balance is how many extra attempts of [KindFailure] the bucket pays for, with fractions.
func (b *Refund) Balance(time.Duration) float64 {
	h, tokens := b.bucket.look()
	return float64(tokens) / float64(h.settings.retry)
}

// Tokens is what the bucket holds: 0 to Capacity, with three decimals.
func (b *Refund) Tokens() float64 {
	_, tokens := b.bucket.look()
	return float64(tokens) / tokenInMilli
}

// Denied is how many withdrawals have been refused so far.
func (b *Refund) Denied() uint64 { return b.denied.Load() }
