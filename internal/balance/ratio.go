// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// ratioBudget allows extra attempts up to a share of the calls. What is earned and what is spent count for the same length
// of time, so at each grant the net spending of the last window is at most what the calls of that window earned, the
// bonuses, and the reserve.
//
// A call that needs no extra attempt allocates nothing and seldom writes to a cache line that another core
// uses; ten calls a window take a lock.
type ratioBudget struct {
	indifferent

	calls   counter      // since the beginning
	slotEnd atomic.Int64 // the end of the window's newest slot; written under mu

	_ [128]byte // failing calls write below, all calls read above
	tally

	mu         sync.Mutex // guards all below
	config     ratioSettings
	rates      ratioRates // of config
	generation uint32
	window     window
	reserve    reserve // of the default budget
	leaseOf    LeaseOf // nil: no pool can be leased from
	lease      Lease   // the reserve; nil: there is none but the config's
	leaseSince uint32  // the generation that lease came with
}

func (c ratioSettings) budget(of LeaseOf) (_ Reloadable, err error) {
	r := &ratioBudget{
		calls: newCounter(), config: c, rates: c.rates(), window: window{width: c.Window / slots}, reserve: newReserve(c.bucket), leaseOf: of,
	}
	r.slotEnd.Store(int64(r.window.end()))
	if r.lease, err = r.leased(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Start earns the call's share.
func (r *ratioBudget) Start(now time.Duration) {
	if int64(now) >= r.slotEnd.Load() {
		r.mu.Lock()
		r.advance(now)
		r.mu.Unlock()
	}
	r.calls.add(now, 1)
}

// advance requires mu.
func (r *ratioBudget) advance(now time.Duration) {
	calls := r.calls.sum()
	if !r.window.started {
		r.reserve.at = now
	}
	r.reserve.fill(now, calls)
	r.window.advance(now, calls)
	r.slotEnd.Store(int64(r.window.end()))
}

// Withdraw charges the cost of c, if the balance covers it.
func (r *ratioBudget) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	cost := c.cost(r.rates.costs)
	p := Permit{kind: c.Kind, generation: r.generation, at: max(now, r.window.start)}
	earned, spent := r.totals(&r.window)
	switch {
	case cost == 0 || earned-spent >= cost: // what is free is granted in debt too
		p.Cost = cost
		r.window.slots[0].spent += cost
	case cost <= r.reserve.tokens:
		p.Cost, p.reserve = cost, true
		r.reserve.tokens -= cost
	case r.draw(now, cost, &p):
	default:
		r.denied.Add(1)
		return Permit{}, false
	}
	if !p.promised {
		r.granted.Add(1)
	}
	return p, true
}

// draw has the lease pay for p. It requires mu.
func (r *ratioBudget) draw(now time.Duration, cost int64, p *Permit) (ok bool) {
	if r.lease == nil {
		return false
	}
	d, ok := r.lease.Take(now, cost)
	p.Cost, p.lease, p.promised = d.Tokens, d.Number, d.Asked
	p.at = now + d.Wait
	return ok
}

// drawn is what the lease has paid for p.
func (p Permit) drawn() Draw { return Draw{Number: p.lease, Tokens: p.Cost, Asked: p.promised} }

// Confirm asks the lease, if that has promised what it did not have.
func (r *ratioBudget) Confirm(now time.Duration, p Permit) bool {
	if !p.promised {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.confirm(now, p) && p.generation == r.generation {
		r.granted.Add(1)
		return true
	}
	r.denied.Add(1)
	return false
}

// confirm has the lease keep its promise, or forget it. It requires mu.
func (r *ratioBudget) confirm(now time.Duration, p Permit) bool {
	return r.lease != nil && p.generation >= r.leaseSince && r.lease.Confirm(now, p.drawn())
}

// Return gives the cost back in the part of the window in which it was charged: were it given back
// now, it would outlive the charge. A charge that has left the window needs no giving back, and one from
// before a reload gives nothing back.
func (r *ratioBudget) Return(now time.Duration, p Permit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(now, p)
}

// giveBack requires mu. A permit that was not charged here cannot turn spending into earning.
func (r *ratioBudget) giveBack(now time.Duration, p Permit) {
	if p.lease != 0 {
		switch {
		case r.lease != nil && p.generation == r.generation:
			r.lease.Return(now, p.drawn())
		case p.promised:
			r.confirm(now, p) // a promise from before a reload: the lease forgets it
		}
		return
	}
	if p.generation != r.generation {
		return
	}
	if p.reserve {
		r.reserve.add(p.Cost)
	} else if s := r.window.at(p.at); s != nil {
		s.spent -= min(max(p.Cost, 0), s.spent)
	}
}

// Settle gives the cost of an attempt that helped back, as Return does. The bonus of
// [KindTimeout] is earned now, however old the permit, unless it is from before a reload.
func (r *ratioBudget) Settle(now time.Duration, p Permit, helped bool) {
	if !helped {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveBack(now, p)
	if p.generation == r.generation {
		r.advance(now)
		r.window.slots[0].bonus += r.rates.bonuses.of(p.kind)
	}
}

// Reload changes the config. The balance keeps its part of what calls and reserve have earned: from
// nothing, of a debt too, to all. What was spent counts for one whole window from now; with another Window,
// calls keep their age.
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
	lease, err := r.leased(own)
	if err != nil {
		return err
	}
	r.advance(now)
	part := r.spentPart()
	if lease != r.lease {
		r.leaseSince = r.generation + 1
	}
	r.config, r.rates, r.lease = own, own.rates(), lease
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

// leased is the lease of a config; nil if it names no pool.
func (r *ratioBudget) leased(c ratioSettings) (lease Lease, err error) {
	switch {
	case c.Fleet == "":
	case r.leaseOf == nil:
		err = errors.New("only a Retrier has pools: see interceptor.WithFleet")
	default:
		lease, err = r.leaseOf(c.Fleet, c.MinPerSecond)
	}
	if err != nil {
		err = fmt.Errorf("budget: Fleet %q: %w", c.Fleet, err)
	}
	return lease, err
}

// spentPart is what part of the earnings was spent: 0 to 1. It requires mu.
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

// Kind implements [Reloadable].
func (*ratioBudget) Kind() string { return RatioConfig{}.Name() }

// Drain spends all that is there.
func (r *ratioBudget) Drain(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	earned, spent := r.totals(&r.window)
	r.window.slots[0].spent += max(earned-spent, 0)
	r.reserve.tokens = 0
}

// Fresh is true when no call has begun, and nothing was charged, in a whole window.
func (r *ratioBudget) Fresh(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, reserve := r.at(now)
	return w.slots == [slots]slot{} && reserve.full()
}

// Balance is in extra attempts [KindFailure], with fractions. It is 0 while more was spent in the
// window than its calls have earned, as may be after a burst whose calls left the window first.
func (r *ratioBudget) Balance(now time.Duration) float64 {
	balance, _ := r.read(now)
	return balance
}

// Capacity is what the calls and bonuses of the window and the reserve have earned, in extra attempts
// [KindFailure].
func (r *ratioBudget) Capacity(now time.Duration) float64 {
	_, capacity := r.read(now)
	return capacity
}

// read returns balance and capacity. To read moves nothing on.
func (r *ratioBudget) read(now time.Duration) (balance, capacity float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, reserve := r.at(now)
	earned, spent := r.totals(&w)
	cost, leased := float64(r.rates.costs.failure), int64(0)
	if r.lease != nil {
		leased = r.lease.Balance(now)
	}
	return float64(max(earned-spent, 0)+reserve.tokens+leased) / cost, float64(earned+w.bonus()+reserve.capacity+leased) / cost
}

// at is what window and reserve are at a time. It requires mu, and changes nothing.
func (r *ratioBudget) at(now time.Duration) (window, reserve) {
	w, v, calls := r.window, r.reserve, r.calls.sum()
	if w.started {
		v.fill(now, calls)
	}
	w.advance(now, calls)
	return w, v
}

// totals are what the calls of a window and the reserve have earned, and what was spent less the bonuses. It
// requires mu.
func (r *ratioBudget) totals(w *window) (earned, spent int64) {
	calls, spent := w.sum()
	return calls*r.rates.share + r.rates.reserve, spent
}
