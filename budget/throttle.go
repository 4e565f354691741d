// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// ThrottleConfig is what a [Throttle] is made from: retryThrottling of gRPC's service config.
type ThrottleConfig struct {
	// MaxTokens is what the bucket holds, and starts with. 1 to 1000 (gRFC A6).
	MaxTokens int
	// TokenRatio is what a call that succeeds adds. At least 0.001, and finite; decimals beyond the
	// third are dropped, as gRFC A6 says: 0.5466 is 0.546.
	TokenRatio float64
}

// Name implements [Config].
func (ThrottleConfig) Name() string { return "throttle" }

// Fields implements [Config].
func (c ThrottleConfig) Fields() []Field {
	return []Field{
		{Name: "MaxTokens", Value: float64(c.MaxTokens), Low: 1, High: 1000},
		{Name: "TokenRatio", Value: c.TokenRatio, Low: 0.001, High: math.MaxFloat64, Decimals: -1},
	}
}

// Check implements [Config].
func (c ThrottleConfig) Check() error { return check(c.Fields()) }

func (c ThrottleConfig) budget() Reloadable { return newThrottle(c) }

// success is what a call that succeeds adds, in thousandths. No call adds more than the bucket holds. To
// multiply and truncate would take one from numbers whose product falls short of a whole, such as 1.001.
func (c ThrottleConfig) success() int64 {
	ratio := min(c.TokenRatio, float64(c.MaxTokens))
	n := milli(ratio)
	if float64(n)/1000 > ratio {
		n--
	}
	return n
}

// Throttle is the token bucket of gRFC A6: an attempt that fails takes a token, a call that
// succeeds adds TokenRatio, and extra attempts are granted while the bucket is more than half full.
// To withdraw costs nothing, and so nothing is given back. The time does not matter, nor does the kind,
// except that [KindUnsent] is always granted.
//
// With a bucket that is full, a call that succeeds only reads. The zero value is not usable: see
// [NewThrottle].
type Throttle struct {
	tally

	bucket  bucket
	success int64 // guarded by the bucket's mu
}

var _ Reloadable = (*Throttle)(nil)

// NewThrottle makes a full bucket. The error is that of [ThrottleConfig.Check].
func NewThrottle(c ThrottleConfig) (*Throttle, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return newThrottle(c), nil
}

func newThrottle(c ThrottleConfig) *Throttle {
	t := new(Throttle)
	t.configure(c)
	t.bucket.add(t.bucket.capacity)
	return t
}

func (t *Throttle) configure(c ThrottleConfig) {
	t.success = c.success()
	t.bucket.resize(int64(c.MaxTokens) * 1000)
}

// Reload changes the config. The bucket stays as full as it is, in parts of MaxTokens.
func (t *Throttle) Reload(_ time.Duration, c Config) error {
	own, err := checked[ThrottleConfig](c)
	if err != nil {
		return err
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.configure(own)
	return nil
}

// Drain leaves half of the tokens, at which nothing is granted, or what there is if that is less.
func (t *Throttle) Drain(time.Duration) {
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.add(min(t.bucket.capacity/2-t.bucket.tokens, 0))
}

// Fresh is true when the bucket is full.
func (t *Throttle) Fresh(time.Duration) bool { return t.bucket.full.Load() }

// Start does nothing: only what comes of a call counts.
func (*Throttle) Start(time.Duration) {}

// Fail takes one token.
func (t *Throttle) Fail(time.Duration) {
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.add(-1000)
}

// Withdraw grants while more than half of the tokens are left, and [KindUnsent] always.
func (t *Throttle) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	if tokens, capacity := t.bucket.read(); 2*tokens <= capacity && c.Kind != KindUnsent {
		t.denied.Add(1)
		return Permit{}, false
	}
	t.granted.Add(1)
	return Permit{Kind: c.Kind, At: now}, true
}

// Return does nothing: the permit was free.
func (*Throttle) Return(time.Duration, Permit) {}

// Settle does nothing: a success counts once, when the call is finished.
func (*Throttle) Settle(time.Duration, Permit, bool) {}

// Finish adds TokenRatio if the call succeeded.
func (t *Throttle) Finish(_ time.Duration, e End) {
	if e == EndFailed || t.bucket.full.Load() {
		return
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.add(t.success)
}

// Balance is what is left above half of the bucket: how many failures it can take before it grants
// no more.
func (t *Throttle) Balance(time.Duration) float64 {
	tokens, capacity := t.bucket.read()
	return float64(max(2*tokens-capacity, 0)) / 2000
}

// Capacity is the balance of a full bucket: half of MaxTokens.
func (t *Throttle) Capacity(time.Duration) float64 {
	_, capacity := t.bucket.read()
	return float64(capacity) / 2000
}

// Tokens is what the bucket holds: 0 to MaxTokens, with three decimals.
func (t *Throttle) Tokens() float64 {
	tokens, _ := t.bucket.read()
	return float64(tokens) / 1000
}
