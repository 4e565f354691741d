// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync"
	"sync/atomic"
	"time"
)

// Ratio allows extra attempts up to a share of the calls, after Finagle's and Linkerd's retry
// budgets; that success gives the cost back is from the AWS SDKs.
//
//	balance = Percent of the calls + MinPerSecond · Window − what was spent
//
// all in the last Window, which slides by tenths. An extra attempt is granted if the balance covers
// its cost: 1 for [KindFailure] and [KindHedge], TimeoutCost for [KindTimeout], nothing for [KindUnsent]. If it succeeds the cost is given back,
// and after a timeout TimeoutBonus on top. So extra attempts that help are nearly free, as when one
// backend of many is broken, and those that do not help dry up, as in an overload. A kind unknown
// to it costs what KindTimeout costs.
//
// What is earned and what is spent count for the same length of time, so at each grant the net
// spending of the last window is at most what the calls of that window earned, the bonuses, and the
// reserve.
//
// A call that needs no extra attempt takes no lock, allocates nothing and seldom writes to a cache
// line that another core uses. The zero value is not usable: see [NewRatio].
type Ratio struct {
	earnings atomic.Pointer[earnings] // written under mu

	_       [128]byte // failing calls write below, all calls read above
	denied  atomic.Uint64
	mu      sync.Mutex // guards all below
	rates   rates
	ledger  ledger
	history history
}

// earnings are the calls of the window.
type earnings struct {
	epochs   epochs
	deposits deposits
}

var _ Budget = (*Ratio)(nil)

// NewRatio makes a budget whose window starts with the first call. The error names every field
// that is out of bounds, its value and the bounds.
func NewRatio(c RatioConfig) (*Ratio, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Ratio{rates: c.rates(), history: newHistory()}
	r.earnings.Store(newEarnings(c.Window))
	return r, nil
}

func newEarnings(window time.Duration) *earnings {
	return &earnings{epochs: epochs{width: window / slots}, deposits: newDeposits()}
}

// Start earns the call's share.
func (r *Ratio) Start(now time.Duration) {
	e := r.earnings.Load()
	since := e.epochs.since(now)
	e.deposits.add(e.epochs.at(since), since)
}

// Fail does nothing: only extra attempts cost.
func (*Ratio) Fail(time.Duration) {}

// Finish does nothing: a call has earned its share at its start.
func (*Ratio) Finish(time.Duration, End) {}

// Withdraw charges the cost of c, if the balance covers it.
func (r *Ratio) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, cost := r.earnings.Load(), r.rates.cost(c)
	now = r.history.charge(now)
	seen := e.epochs.of(now)
	epoch := r.ledger.latest(seen)
	if cost > 0 && r.balance(epoch) < cost { // the balance may be a debt
		r.denied.Add(1)
		return Permit{}, false
	}
	r.ledger.at(epoch).spent += cost
	if epoch != seen {
		now = e.epochs.start(epoch) // the permit says where it was charged
	}
	r.history.charged = max(r.history.charged, now)
	return Permit{Charge: c, At: now, Cost: cost}, true
}

// Return gives the cost back in the part of the window in which it was charged: were it given back
// now, it would outlive the charge. A charge that has left the window needs no giving back.
func (r *Ratio) Return(_ time.Duration, p Permit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restore(p)
}

// restore requires mu.
func (r *Ratio) restore(p Permit) {
	at, cost := r.history.now(p)
	r.ledger.restore(r.earnings.Load().epochs.of(at), cost)
}

// Settle gives the cost of an attempt that helped back, as [Ratio.Return] does. The bonus of a kind
// that has one is earned now, however old the permit.
func (r *Ratio) Settle(now time.Duration, p Permit, helped bool) {
	if !helped {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restore(p)
	if k := p.Charge.Kind; k != KindFailure && k != KindHedge && k != KindUnsent {
		seen := r.earnings.Load().epochs.of(now)
		r.ledger.at(r.ledger.latest(seen)).bonus += r.rates.timeoutBonus
	}
}

// Balance is in extra attempts of [KindFailure], with fractions. It is 0 while more was spent in the
// window than its calls have earned, as may be after a burst whose calls left the window first.
func (r *Ratio) Balance(now time.Duration) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch := r.earnings.Load().epochs.of(now)
	return float64(max(r.balance(max(epoch, r.ledger.newest)), 0)) / token
}

// Denied is how many withdrawals have been refused so far.
func (r *Ratio) Denied() uint64 { return r.denied.Load() }

// balance requires r.mu to be held. Calls may begin meanwhile, which only adds to it.
func (r *Ratio) balance(epoch uint64) int64 {
	return r.capacity(epoch) - r.ledger.net(epoch)
}

// capacity is the balance if nothing had been spent. It requires r.mu to be held.
func (r *Ratio) capacity(epoch uint64) int64 {
	return r.earnings.Load().deposits.sum(epoch)*r.rates.share + r.rates.reserve
}
