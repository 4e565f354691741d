// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import "time"

// RefundConfig is a [budget.RefundConfig].
type RefundConfig struct {
	Capacity    float64 // of the bucket, which starts full. 1 to 1,000,000
	RetryCost   float64 // of an extra attempt, except after a timeout. 0.001 to Capacity
	TimeoutCost float64 // of an extra attempt after a timeout. 0.001 to Capacity
	Success     float64 // earned by a call that succeeds at once. 0 to Capacity
}

// DefaultRefund returns 500, 5, 10 and 1: the numbers of the AWS SDKs.
func DefaultRefund() RefundConfig {
	return RefundConfig{Capacity: 500, RetryCost: 5, TimeoutCost: 10, Success: 1}
}

func (RefundConfig) name() string { return "refund" }

func (c RefundConfig) fields() []Field {
	capacity := Field{Name: "Capacity", Value: c.Capacity, Low: 1, High: 1e6, Decimals: 3}
	most := c.Capacity
	if !(most >= capacity.Low && most <= capacity.High) {
		most = capacity.High // an error of the capacity is reported for it
	}
	return []Field{
		capacity,
		{Name: "RetryCost", Value: c.RetryCost, Low: 0.001, High: most, Decimals: 3},
		{Name: "TimeoutCost", Value: c.TimeoutCost, Low: 0.001, High: most, Decimals: 3},
		{Name: "Success", Value: c.Success, Low: 0, High: most, Decimals: 3},
	}
}

func (c RefundConfig) check() error { return checkFields(c.fields()) }

func (c RefundConfig) budget() Reloadable { return newRefund(c) }

// refundBudget is the token bucket of the AWS SDKs. If the bucket is full, a successful call only reads.
type refundBudget struct {
	indifferent
	tally

	bucket     bucket
	config     RefundConfig // guarded by the bucket's mu, as is generation
	generation uint32
}

func newRefund(c RefundConfig) *refundBudget {
	b := &refundBudget{config: c}
	b.bucket.resize(milli(c.Capacity))
	b.bucket.addTokens(b.bucket.capacity)
	return b
}

// Reload changes the config. The bucket stays equally full, relative to its capacity.
func (b *refundBudget) Reload(_ time.Duration, c Config) error {
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

// Kind implements [Reloadable].
func (*refundBudget) Kind() string { return RefundConfig{}.name() }

// Drain empties the bucket.
func (b *refundBudget) Drain(time.Duration) {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	b.bucket.addTokens(-b.bucket.tokens)
}

// Fresh reports whether the bucket is full.
func (b *refundBudget) Fresh(time.Duration) bool { return b.bucket.full.Load() }

// prices returns the costs of extra attempts.
func (c RefundConfig) prices() prices {
	retry := milli(c.RetryCost)
	return prices{failure: retry, timeout: milli(c.TimeoutCost), hedge: retry}
}

// Withdraw takes the cost of c, if the bucket holds it.
func (b *refundBudget) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	cost := c.cost(b.config.prices())
	if b.bucket.tokens < cost {
		b.denied.Add(1)
		return Permit{}, false
	}
	b.bucket.addTokens(-cost)
	return Permit{Kind: c.Kind, generation: b.generation, at: now, Cost: cost}, true
}

// Return returns the cost, unless the config has changed since.
func (b *refundBudget) Return(_ time.Duration, p Permit) {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	if p.generation == b.generation {
		b.bucket.addTokens(min(max(p.Cost, 0), b.bucket.capacity))
	}
}

// Settle returns the cost if the attempt helped, like Return.
func (b *refundBudget) Settle(now time.Duration, p Permit, helped bool) {
	b.granted.Add(1)
	if helped {
		b.Return(now, p)
	}
}

// Finish adds Success for a call that succeeded at once.
func (b *refundBudget) Finish(_ time.Duration, e End) {
	if e != EndAtOnce || b.bucket.full.Load() {
		return
	}
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	b.bucket.addTokens(milli(b.config.Success))
}

// Balance returns how many extra attempts of KindFailure the bucket pays for, with fractions.
func (b *refundBudget) Balance(time.Duration) float64 {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	return float64(b.bucket.tokens) / float64(milli(b.config.RetryCost))
}

// Capacity returns how many extra attempts of KindFailure a full bucket pays for.
func (b *refundBudget) Capacity(time.Duration) float64 {
	b.bucket.mu.Lock()
	defer b.bucket.mu.Unlock()
	return float64(b.bucket.capacity) / float64(milli(b.config.RetryCost))
}
