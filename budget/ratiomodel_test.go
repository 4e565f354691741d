// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/budget"
)

// model is a ratio budget that keeps every slot for ever, in micro-tokens.
type model struct {
	width                       time.Duration
	share, reserve, cost, bonus int64
	calls, spent, earned        map[int64]int64
	denied                      uint64
}

// drawn is a budget and the model of it.
func drawn(t *rapid.T) (*budget.Ratio, *model) {
	number := func(low, high int, label string) int64 { // in ten-thousandths
		return int64(rapid.IntRange(low, high).Draw(t, label))
	}
	percent, perSecond := number(1, 3_000_000, "percent"), number(0, 20_000, "per second")
	cost, bonus := number(10_000, 80_000, "cost"), number(0, 40_000, "bonus")
	window := time.Duration(rapid.SampledFrom([]int{1, 2, 10, 60}).Draw(t, "window")) * time.Second
	b, err := budget.NewRatio(budget.RatioConfig{
		Percent: float64(percent) / 1e4, MinPerSecond: float64(perSecond) / 1e4, Window: window,
		TimeoutCost: float64(cost) / 1e4, TimeoutBonus: float64(bonus) / 1e4,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, &model{
		width: window / 10, share: percent, reserve: perSecond * 100 * int64(window/time.Second), cost: cost * 100, bonus: bonus * 100,
		calls: map[int64]int64{}, spent: map[int64]int64{}, earned: map[int64]int64{},
	}
}

func (m *model) epoch(now time.Duration) int64 { return int64((now - t0) / m.width) }

func (m *model) price(k budget.Kind) int64 {
	if k == failure {
		return 1_000_000
	}
	return m.cost
}

// limit is what the window has earned, and net what was spent less what bonuses brought.
func (m *model) limit(epoch int64) (limit, net int64) {
	limit = m.reserve
	for e := epoch - 9; e <= epoch; e++ {
		limit += m.calls[e] * m.share
		net += m.spent[e] - m.earned[e]
	}
	return limit, net
}

func (m *model) balance(epoch int64) int64 {
	limit, net := m.limit(epoch)
	return limit - net
}

// A budget with rings of ten slots is the same as one that forgets nothing and adds up the last ten.
func TestRatioIsItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, m := drawn(t)
		now := t0
		b.Withdraw(now, charge(255)) // the slots begin here
		if m.balance(0) >= m.cost {
			m.spent[0] += m.cost
		} else {
			m.denied++
		}
		var out []budget.Permit
		take := func(t *rapid.T) budget.Permit {
			if len(out) == 0 {
				t.Skip("no permit is out")
			}
			i := rapid.IntRange(0, len(out)-1).Draw(t, "permit")
			p := out[i]
			out = append(out[:i], out[i+1:]...)
			return p
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now += m.width * time.Duration(rapid.IntRange(0, 100).Draw(t, "tenths of a slot")) / 10
			},
			"start": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "calls") {
					b.Start(now)
					m.calls[m.epoch(now)]++
				}
			},
			"withdraw": func(t *rapid.T) {
				k := budget.Kind(rapid.IntRange(0, 1).Draw(t, "kind"))
				want := m.balance(m.epoch(now)) >= m.price(k)
				p, ok := b.Withdraw(now, charge(k))
				if ok != want {
					t.Fatalf("granted %v; want %v", ok, want)
				}
				if !ok {
					m.denied++
					return
				}
				m.spent[m.epoch(now)] += m.price(k)
				out = append(out, p)
				if limit, net := m.limit(m.epoch(now)); net > limit {
					t.Fatalf("net spending %d above %d", net, limit)
				}
			},
			"return": func(t *rapid.T) {
				p := take(t)
				b.Return(now, p)
				m.spent[m.epoch(p.At)] -= m.price(p.Charge.Kind)
			},
			"refund": func(t *rapid.T) {
				p := take(t)
				b.Settle(now, p, true)
				m.spent[m.epoch(p.At)] -= m.price(p.Charge.Kind)
				if p.Charge.Kind == timeout {
					m.earned[m.epoch(now)] += m.bonus
				}
			},
			"": func(t *rapid.T) {
				want := float64(max(m.balance(m.epoch(now)), 0)) / 1e6
				if got := b.Balance(now); got != want {
					t.Fatalf("balance %v; want %v", got, want)
				}
				if got := b.Denied(); got != m.denied {
					t.Fatalf("denied %d; want %d", got, m.denied)
				}
			},
		})
	})
}
