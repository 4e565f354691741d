// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/budget"
)

// purse is a Refund in milli-tokens, without concurrency.
type purse struct{ capacity, retry, timeout, success, tokens int64 }

func drawnPurse(t *rapid.T) (budget.RefundConfig, purse) {
	capacity := rapid.Int64Range(1000, 100_000).Draw(t, "capacity")
	part := func(low int64, label string) int64 { return rapid.Int64Range(low, capacity).Draw(t, label) }
	p := purse{capacity, part(1, "retry"), part(1, "timeout"), part(0, "success"), capacity}
	tokens := func(n int64) float64 { return float64(n) / 1000 }
	return budget.RefundConfig{Capacity: tokens(p.capacity), RetryCost: tokens(p.retry), TimeoutCost: tokens(p.timeout), Success: tokens(p.success)}, p
}

func (p *purse) price(c budget.Charge) int64 {
	quarters := int64(4 * c.Factor)
	if c.Kind == timeout {
		return max((p.timeout*quarters+2)/4, 1)
	}
	return max((p.retry*quarters+2)/4, 1)
}

func (p *purse) add(n int64) { p.tokens = min(p.tokens+n, p.capacity) }

func TestRefundIsItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config, m := drawnPurse(t)
		b, err := budget.NewRefund(config)
		if err != nil {
			t.Fatal(err)
		}
		var out []budget.Permit
		back := func() {
			if len(out) == 0 {
				t.Skip("no permit is out")
			}
			m.add(min(out[0].Cost, m.price(out[0].Charge)))
		}
		t.Repeat(map[string]func(*rapid.T){
			"withdraw": func(t *rapid.T) {
				c := budget.Charge{Kind: budget.Kind(rapid.IntRange(0, 2).Draw(t, "kind")), Factor: float64(rapid.IntRange(1, 12).Draw(t, "quarters")) / 4}
				want := m.tokens >= m.price(c)
				p, ok := b.Withdraw(t0, c)
				if ok != want {
					t.Fatalf("granted %v with %+v for %d; want %v", ok, m, m.price(c), want)
				}
				if ok {
					m.tokens -= m.price(c)
					out = append(out, p)
				}
			},
			"return": func(*rapid.T) { back(); b.Return(t0, out[0]); out = out[1:] },
			"helped": func(*rapid.T) { back(); b.Settle(t0, out[0], true); out = out[1:] },
			"did not help": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("no permit is out")
				}
				b.Settle(t0, out[0], false)
				out = out[1:]
			},
			"at once":   func(*rapid.T) { b.Finish(t0, budget.EndAtOnce); m.add(m.success) },
			"succeeded": func(*rapid.T) { b.Finish(t0, budget.EndSucceeded) },
			"failed":    func(*rapid.T) { b.Fail(t0); b.Finish(t0, budget.EndFailed) },
			"reload": func(t *rapid.T) {
				config, fresh := drawnPurse(t)
				fresh.tokens = m.tokens * fresh.capacity / m.capacity
				if err := b.Reload(t0, config); err != nil {
					t.Fatal(err)
				}
				m = fresh
			},
			"": func(t *rapid.T) {
				if got, want := b.Tokens(), float64(m.tokens)/1000; got != want {
					t.Fatalf("%v tokens; want %v", got, want)
				}
			},
		})
	})
}
