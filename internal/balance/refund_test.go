// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func refund(tb testing.TB, c RefundConfig) *refundBudget {
	tb.Helper()
	return made[*refundBudget](tb, c)
}

func TestRefund(t *testing.T) {
	t.Parallel()
	b := refund(t, RefundConfig{Capacity: 20, RetryCost: 5, TimeoutCost: 10, Success: 1.5})
	play(t, b, []step{
		{0, withdraw(timeout), 2, true},
		{0, withdraw(KindHedge), 1, true},
		{0, withdraw(timeout), 1, false},
		{0, withdraw(failure), 0, true},
		{0, withdraw(failure), 0, false},
		{1, settle(2, false), 0, true}, // it did not help
		{1, settle(0, true), 2, true},
		{1, giveBack(1), 3, true},
		{2, finish(1, EndAtOnce), 3.3, true},
		{2, finish(1, EndSucceeded), 3.3, true}, // its extra attempt has paid for itself
		{2, finish(1, EndFailed), 3.3, true},
		{3, finish(10, EndAtOnce), 4, true}, // full
	})
	if p, ok := b.Withdraw(t0, Charge{Factor: 2.5}); !ok || p.Cost != 12_500 || tokens(&b.bucket) != 7.5 {
		t.Errorf("%+v, %v, %v tokens left; want a cost of 12.5 out of 20", p, ok, tokens(&b.bucket))
	}
}

func drawRefund(t *rapid.T) Config {
	capacity := rapid.IntRange(1000, 100_000).Draw(t, "capacity")
	part := func(low int, label string) float64 {
		return float64(rapid.IntRange(low, capacity).Draw(t, label)) / 1000
	}
	return RefundConfig{
		Capacity: float64(capacity) / 1000, RetryCost: part(1, "retry"), TimeoutCost: part(1, "timeout"), Success: part(0, "success"),
	}
}

// refundModel counts in thousandths of a token.
type refundModel struct {
	config                                    Config
	tokens, capacity, retry, timeout, success int64
	costs                                     []int64 // by withdrawal; 0 after a reload
}

func newRefundModel(c Config) model {
	m := &refundModel{tokens: 1, capacity: 1}
	m.reload(t0, c)
	return m
}

func (m *refundModel) reload(_ time.Duration, c Config) {
	if c == m.config {
		return
	}
	config, milli := c.(RefundConfig), func(tokens float64) int64 { return int64(math.Round(tokens * 1000)) }
	m.config, m.retry, m.timeout, m.success = c, milli(config.RetryCost), milli(config.TimeoutCost), milli(config.Success)
	m.tokens = m.tokens * milli(config.Capacity) / m.capacity
	m.capacity = milli(config.Capacity)
	clear(m.costs)
}

func (m *refundModel) add(n int64)       { m.tokens = min(m.tokens+n, m.capacity) }
func (*refundModel) start(time.Duration) {}
func (*refundModel) fail()               {}
func (m *refundModel) giveBack(n int)    { m.add(m.costs[n]) }

func (m *refundModel) settle(_ time.Duration, n int, helped bool) {
	if helped {
		m.giveBack(n)
	}
}

func (m *refundModel) finish(e End) {
	if e == EndAtOnce {
		m.add(m.success)
	}
}

func (m *refundModel) withdraw(_ time.Duration, c Charge) (int64, bool) {
	quarters, cost := int64(4*c.Factor), int64(0)
	switch c.Kind {
	case KindUnsent:
	case failure, KindHedge:
		cost = max((m.retry*quarters+2)/4, 1)
	default:
		cost = max((m.timeout*quarters+2)/4, 1)
	}
	if m.tokens < cost {
		return 0, false
	}
	m.tokens -= cost
	m.costs = append(m.costs, cost)
	return cost, true
}

func (m *refundModel) balance(time.Duration) float64 { return float64(m.tokens) / float64(m.retry) }
