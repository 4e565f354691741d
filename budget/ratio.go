// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// ratioBudget allows extra attempts up to a share of the calls. Earnings and spending count for the same length of time, so at
// each grant the net spending of the last window is at most the earnings of that window's calls, the bonuses, and the reserve.
//
// A call without extra attempts allocates nothing and rarely writes to a cache line that another core uses; ten calls per
// window take a lock.
type ratioBudget struct {
	indifferent

	calls   counter      // since the start
	slotEnd atomic.Int64 // the end of the window's newest slot; written under mu

	_ [128]byte // failing calls write below, all calls read above
	tally

	mu         sync.Mutex // guards all below
	config     ratioSettings
	rates      ratioRates // of config
	generation uint32
	window     window
	reserve    reserve // of the default budget
}

func (c ratioSettings) budget() kind {
	r := &ratioBudget{
		calls: newCounter(), config: c, rates: c.rates(), window: window{width: c.Window / slots}, reserve: newReserve(c.bucket),
	}
	r.slotEnd.Store(int64(r.window.slotEnd()))
	return r
}

// Start earns the call's share.
func (r *ratioBudget) Start(now time.Duration) {
	if int64(now) >= r.slotEnd.Load() {
		r.mu.Lock()
		r.advance(now)
		r.mu.Unlock()
	}
	r.calls.addToStripe(now, 1)
}

// advance moves the window to now. r.mu must be held.
func (r *ratioBudget) advance(now time.Duration) {
	calls := r.calls.sum()
	if !r.window.started {
		r.reserve.at = now
	}
	r.reserve.fill(now, calls)
	r.window.advance(now, calls)
	if end := int64(r.window.slotEnd()); end != r.slotEnd.Load() { // all calls read it, and a store takes it from their caches
		r.slotEnd.Store(end)
	}
}

// Missed spends as much as an attempt after a timeout costs, as far as there is something to spend: where calls get no response in
// time, extra attempts only take time from other calls.
func (r *ratioBudget) Missed(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	earned, spent := r.totals(&r.window)
	paid := min(max(earned-spent, 0), r.rates.costs.timeout)
	r.window.slots[0].spent += paid
	r.reserve.tokens = max(r.reserve.tokens-r.rates.costs.timeout+paid, 0)
}

// Withdraw charges the cost of c, if the balance covers it.
func (r *ratioBudget) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	cost := c.cost(r.rates.costs)
	p := Permit{Cause: c.Cause, generation: r.generation, at: max(now, r.window.start)}
	earned, spent := r.totals(&r.window)
	if c.EarnedOnly {
		earned -= r.rates.reserve
	}
	switch {
	case cost == 0 || earned-spent >= cost: // free kinds are granted even in debt
		p.Cost = cost
		r.window.slots[0].spent += cost
	case cost <= r.reserve.tokens && !c.EarnedOnly:
		p.Cost, p.reserve = cost, true
		r.reserve.tokens -= cost
	default:
		r.denied.Add(1)
		return Permit{}, false
	}
	return p, true
}

// Return returns the cost to the slot of the charge: in a later slot it would outlive the charge. If the charge has left the
// window, or is from before a reload, nothing is returned.
func (r *ratioBudget) Return(_ time.Duration, p Permit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(p)
}

// giveBack returns the cost of p. A permit that was not charged here can't turn spending into earnings. r.mu must be held.
func (r *ratioBudget) giveBack(p Permit) {
	if p.generation != r.generation {
		return
	}
	if p.reserve {
		r.reserve.addTokens(p.Cost)
	} else if s := r.window.at(p.at); s != nil {
		s.spent -= min(max(p.Cost, 0), s.spent)
	}
}

// Settle returns the cost of an attempt that helped, like Return. A bonus is earned now, however old the permit, unless it is from
// before a reload. After a failure it only makes up for what other attempts have spent, those in flight included: saved, it would pay for
// the first seconds of an outage.
func (r *ratioBudget) Settle(now time.Duration, p Permit, helped bool) {
	r.granted.Add(1)
	if !helped {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(p)
	bonus := r.rates.bonuses.price(p.Cause)
	if p.Cause <= CauseFailure {
		_, spent := r.totals(&r.window)
		bonus = min(r.rates.costs.failure, max(spent, 0))
	}
	if bonus > 0 && p.generation == r.generation {
		r.advance(now)
		r.window.slots[0].bonus += bonus
	}
}

// Reload changes the config. The balance keeps its ratio to the earnings of calls and reserve, between 0 (also for a debt) and
// 1. Spending counts for one whole window from now. If Window changes, calls keep their age.
func (r *ratioBudget) Reload(now time.Duration, c Config) error {
	own, err := settingsOf(c)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if own == r.config {
		return nil
	}
	r.advance(now)
	part := r.spentPart()
	r.config, r.rates = own, own.rates()
	r.reserve = newReserve(own.bucket)
	r.reserve.at, r.reserve.calls = now, r.calls.sum()
	r.reserve.tokens = int64(float64(r.reserve.tokens) * (1 - part))
	r.generation++
	r.window.resize(own.Window / slots)
	r.advance(now)
	earned, _ := r.totals(&r.window)
	r.window.slots[0].spent = int64(math.Ceil(float64(earned) * part))
	return nil
}

// spentPart returns the part of the earnings that was spent, 0 to 1. r.mu must be held.
func (r *ratioBudget) spentPart() float64 {
	earned, spent := r.totals(&r.window)
	earned += r.reserve.capacity
	spent = max(spent, 0) + r.reserve.capacity - r.reserve.tokens
	switch {
	case spent <= 0:
		return 0
	case spent >= earned:
		return 1
	default:
		return float64(spent) / float64(earned)
	}
}

// Kind returns the name of its kind.
func (*ratioBudget) Kind() string { return "ratio" }

// Drain spends the whole balance.
func (r *ratioBudget) Drain(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	earned, spent := r.totals(&r.window)
	r.window.slots[0].spent += max(earned-spent, 0)
	r.reserve.tokens = 0
}

// Fresh reports whether a whole window has passed without a call or a charge.
func (r *ratioBudget) Fresh(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, reserve := r.at(now)
	return w.slots == [slots]slot{} && reserve.full()
}

// Balance returns extra attempts of [CauseFailure], with fractions. It is 0 while the spending in the window exceeds the
// earnings, as may be after a burst whose calls left the window first.
func (r *ratioBudget) Balance(now time.Duration) float64 {
	balance, _ := r.balanceAndCapacity(now)
	return balance
}

// Capacity returns the earnings of the window's calls, the bonuses and the reserve, in extra attempts of [CauseFailure].
func (r *ratioBudget) Capacity(now time.Duration) float64 {
	_, capacity := r.balanceAndCapacity(now)
	return capacity
}

// balanceAndCapacity returns balance and capacity. It changes nothing.
func (r *ratioBudget) balanceAndCapacity(now time.Duration) (balance, capacity float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, reserve := r.at(now)
	earned, spent := r.totals(&w)
	cost := float64(r.rates.costs.failure)
	return float64(max(earned-spent, 0)+reserve.tokens) / cost, float64(earned+w.bonus()+reserve.capacity) / cost
}

// at returns the window and the reserve at a time. It changes nothing. r.mu must be held.
func (r *ratioBudget) at(now time.Duration) (window, reserve) {
	w, v, calls := r.window, r.reserve, r.calls.sum()
	if w.started {
		v.fill(now, calls)
	}
	w.advance(now, calls)
	return w, v
}

// totals returns the earnings of a window's calls and the reserve, and the spending minus the bonuses. r.mu must be held.
func (r *ratioBudget) totals(w *window) (earned, spent int64) {
	calls, spent := w.sum()
	return calls*r.rates.share + r.rates.reserve, spent
}
