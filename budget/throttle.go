// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"time"
)

// Throttle is the token bucket of gRFC A6: an attempt that fails takes a token, a call that
// succeeds adds TokenRatio, and extra attempts are granted while the bucket is more than half full.
// To withdraw costs nothing, and so nothing is given back. The time does not matter, nor does
// the kind, except that [KindUnsent] is granted always.
//
// With a bucket that is full, a call that succeeds only reads. The zero value is not usable: see
// [NewThrottle].
type Throttle struct {
	bucket bucket[throttling]
	denied atomic.Uint64
}

var _ Budget = (*Throttle)(nil)

// NewThrottle makes a full bucket. The error names every field that is out of bounds, its value and
// the bounds.
func NewThrottle(c ThrottleConfig) (*Throttle, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	t := new(Throttle)
	t.bucket.fill(c.milli())
	return t, nil
}

// Reload changes the config. The bucket stays as full as it was, in parts of MaxTokens: a refill would
// let every client of a service in trouble retry again. A config that is out of bounds is refused, and
// changes nothing.
func (t *Throttle) Reload(_ time.Duration, c ThrottleConfig) error {
	if err := c.check(); err != nil {
		return err
	}
	t.bucket.become(c.milli())
	return nil
}

// Drain leaves half of the tokens, at which nothing is granted, or what there is if that is less.
func (t *Throttle) Drain(time.Duration) {
	for {
		if h, tokens := t.bucket.look(); h.change(tokens, min(h.most/2-tokens, 0)) {
			return
		}
	}
}

// Start does nothing: only what comes of a call counts.
func (*Throttle) Start(time.Duration) {}

// Fail takes one token.
func (t *Throttle) Fail(time.Duration) {
	for {
		if h, tokens := t.bucket.look(); h.change(tokens, -tokenInMilli) {
			return
		}
	}
}

// Withdraw grants while more than half of the tokens are left, and [KindUnsent] always.
func (t *Throttle) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	if h, tokens := t.bucket.look(); 2*tokens <= h.most && c.Kind != KindUnsent {
		t.denied.Add(1)
		return Permit{}, false
	}
	return Permit{Charge: c, At: now}, true
}

// Return does nothing: the permit was free.
func (*Throttle) Return(time.Duration, Permit) {}

// Settle does nothing: a success counts once, when the call is finished.
func (*Throttle) Settle(time.Duration, Permit, bool) {}

// Finish adds TokenRatio if the call succeeded.
func (t *Throttle) Finish(_ time.Duration, e End) {
	for e != EndFailed {
		if h, tokens := t.bucket.look(); h.change(tokens, h.settings.ratio) {
			return
		}
	}
}

// Balance is what is left above half of the bucket: how many failures it can take before it grants
// no more.
func (t *Throttle) Balance(time.Duration) float64 {
	h, tokens := t.bucket.look()
	return float64(max(2*tokens-h.most, 0)) / (2 * tokenInMilli)
}

// Tokens is what the bucket holds: 0 to MaxTokens, with three decimals.
func (t *Throttle) Tokens() float64 {
	_, tokens := t.bucket.look()
	return float64(tokens) / tokenInMilli
}

// Denied is how many withdrawals have been refused so far.
func (t *Throttle) Denied() uint64 { return t.denied.Load() }
