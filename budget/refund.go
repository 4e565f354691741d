// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "time"

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

// Name implements [Config].
func (RefundConfig) Name() string { return "refund" }

// Fields implements [Config].
func (c RefundConfig) Fields() []Field {
	capacity := Field{Name: "Capacity", Value: c.Capacity, Low: 1, High: 1e6, Decimals: 3}
	most := c.Capacity
	if !(most >= capacity.Low && most <= capacity.High) {
		most = capacity.High // the capacity itself is reported
	}
	return []Field{
		capacity,
		{Name: "RetryCost", Value: c.RetryCost, Low: 0.001, High: most, Decimals: 3},
		{Name: "TimeoutCost", Value: c.TimeoutCost, Low: 0.001, High: most, Decimals: 3},
		{Name: "Success", Value: c.Success, Low: 0, High: most, Decimals: 3},
	}
}

// Check implements [Config].
func (c RefundConfig) Check() error { return check(c.Fields()) }

func (c RefundConfig) budget() Reloadable { return newRefund(c) }

// Refund is the token bucket of the AWS SDKs: an extra attempt takes its cost, and gives it back if it
// helped; a call that succeeds at once adds Success. It starts full, so a client may retry Capacity /
// RetryCost times before anything was earned, and then one time for so many calls that succeed. An
// outage that has emptied it stays without retries, since nothing succeeds. [KindUnsent] is free, and the
// time does not matter.
//
// With a bucket that is full, a call that succeeds only reads. The zero value is not usable: see
// [NewRefund].
type Refund struct {
	tally

	bucket     bucket
	config     RefundConfig // guarded by the bucket's mu, as is the next
	generation uint32
}

var _ Reloadable = (*Refund)(nil)

// NewRefund makes a full bucket. The error is that of [RefundConfig.Check].
func NewRefund(c RefundConfig) (*Refund, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return newRefund(c), nil
}

func newRefund(c RefundConfig) *Refund {
	b := &Refund{config: c}
	b.bucket.resize(milli(c.Capacity))
	b.bucket.add(b.bucket.capacity)
	return b
}

// Reload changes the config. The bucket stays as full as it is, in parts of its capacity.
func (b *Refund) Reload(_ time.Duration, c Config) error {
	own, err := checked[RefundConfig](c)
	if err != nil {
		return err
	}
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	if own == b.config {
		return nil
	}
	b.config = own
	b.generation++
	b.bucket.resize(milli(own.Capacity))
	return nil
}

// Drain leaves nothing in the bucket.
func (b *Refund) Drain(time.Duration) {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	b.bucket.add(-b.bucket.tokens)
}

// Fresh is true when the bucket is full.
func (b *Refund) Fresh(time.Duration) bool { return b.bucket.full.Load() }

// Start does nothing: only what comes of a call counts.
func (*Refund) Start(time.Duration) {}

// Fail does nothing: only extra attempts cost.
func (*Refund) Fail(time.Duration) {}

// prices are what extra attempts cost.
func (c RefundConfig) prices() prices {
	retry := milli(c.RetryCost)
	return prices{failure: retry, timeout: milli(c.TimeoutCost), hedge: retry}
}

// Withdraw takes the cost of c, if the bucket holds it.
func (b *Refund) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	cost := c.cost(b.config.prices())
	if b.bucket.tokens < cost {
		b.denied.Add(1)
		return Permit{}, false
	}
	b.bucket.add(-cost)
	b.granted.Add(1)
	return Permit{Kind: c.Kind, Generation: b.generation, At: now, Cost: cost}, true
}

// Return gives the cost back, unless the config has changed since.
func (b *Refund) Return(_ time.Duration, p Permit) {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	if p.Generation == b.generation {
		b.bucket.add(min(max(p.Cost, 0), b.bucket.capacity))
	}
}

// Settle gives the cost back if the attempt helped, as [Refund.Return] does.
func (b *Refund) Settle(now time.Duration, p Permit, helped bool) {
	if helped {
		b.Return(now, p)
	}
}

// Finish adds Success for a call that succeeded at once.
func (b *Refund) Finish(_ time.Duration, e End) {
	if e != EndAtOnce || b.bucket.full.Load() {
		return
	}
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	b.bucket.add(milli(b.config.Success))
}

// Balance is how many extra attempts [KindFailure] the bucket pays for, with fractions.
func (b *Refund) Balance(time.Duration) float64 {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	return float64(b.bucket.tokens) / float64(milli(b.config.RetryCost))
}

// Capacity is how many extra attempts [KindFailure] a full bucket pays for.
func (b *Refund) Capacity(time.Duration) float64 {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	return float64(b.bucket.capacity) / float64(milli(b.config.RetryCost))
}

// Tokens is what the bucket holds: 0 to Capacity, with three decimals.
func (b *Refund) Tokens() float64 {
	tokens, _ := b.bucket.read()
	return float64(tokens) / 1000
}
