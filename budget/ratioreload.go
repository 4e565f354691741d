// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"slices"
	"time"
)

// scale is one reload: what was spent before it counts factor times as much.
type scale struct {
	at     time.Duration
	factor float64
}

// Reload changes the config. The balance stays the same part of what it would be if nothing had been
// spent: what was spent is scaled with what was earned. So an exhausted budget stays exhausted, and a
// reload never refills one; what permits of before give back is scaled alike. With another Window, what
// has counted so far counts for one whole new window from now. A config that is out of bounds is refused,
// and changes nothing.
func (r *Ratio) Reload(now time.Duration, c RatioConfig) error {
	if err := c.check(); err != nil {
		return err
	}
	fresh := c.rates()
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.earnings.Load()
	epoch := r.ledger.latest(old.epochs.of(now))
	before := r.capacity(epoch)
	sameWindow := old.epochs.width == c.Window/slots
	if fresh == r.rates && sameWindow {
		return nil
	}
	r.rates = fresh
	factor := 1.0
	if after := r.capacity(epoch); before > 0 {
		factor = float64(after) / float64(before)
	}
	r.rescale(now, factor)
	if !sameWindow {
		r.move(now, epoch, newEarnings(c.Window))
	}
	return nil
}

// Drain leaves nothing of the balance: the budget is as if all that was earned had been spent now.
func (r *Ratio) Drain(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch := r.ledger.latest(r.earnings.Load().epochs.of(now))
	r.ledger.at(epoch).spent += max(r.balance(epoch), 0)
}

// rescale multiplies what was spent, and what will be given back of it. It requires mu.
func (r *Ratio) rescale(now time.Duration, factor float64) {
	for i := range r.ledger.entries {
		e := &r.ledger.entries[i]
		e.spent, e.bonus = ceil(e.spent, factor), floor(e.bonus, factor)
	}
	oldest := now - time.Minute // the longest window
	r.scales = slices.DeleteFunc(r.scales, func(s scale) bool { return s.at < oldest })
	r.scales = append(r.scales, scale{now, factor})
}

// move begins a new window with what counts in the old one, all in its first slot. It requires mu.
func (r *Ratio) move(now time.Duration, epoch uint64, fresh *earnings) {
	calls, net := r.earnings.Load().deposits.sum(epoch), r.ledger.net(epoch)
	since := fresh.epochs.since(now) // the slots begin here
	fresh.deposits.shards[0].ring[0].Store(uint64(calls) & math.MaxUint32)
	r.ledger = ledger{}
	first := r.ledger.at(fresh.epochs.at(since))
	first.spent, first.bonus = max(net, 0), max(-net, 0)
	r.earnings.Store(fresh)
}

// scaled is what a permit gives back now. It requires mu.
func (r *Ratio) scaled(p Permit) int64 {
	cost := p.Cost
	for _, s := range r.scales {
		if p.At <= s.at {
			cost = floor(cost, s.factor)
		}
	}
	return cost
}

func floor(n int64, factor float64) int64 { return int64(math.Floor(float64(n) * factor)) }
func ceil(n int64, factor float64) int64  { return int64(math.Ceil(float64(n) * factor)) }
