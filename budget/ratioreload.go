// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// Reload changes the config. The balance stays the same part of what it would be if nothing had been
// spent: what was spent is scaled with what was earned. So an exhausted budget stays exhausted, and a
// reload never refills one; what permits of before give back is scaled alike, and after sixteen more
// reloads they give back nothing. With another Window, calls and bonuses keep their age, and what was
// spent counts for one whole new window from now. A config that is out of bounds is refused, and changes
// nothing.
func (r *Ratio) Reload(now time.Duration, c RatioConfig) error {
	if err := c.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old, fresh := r.earnings.Load(), c.rates()
	sameWindow := old.epochs.width == c.Window/slots
	if fresh == r.rates && sameWindow {
		return nil
	}
	now = r.history.reload(now)
	seen := old.epochs.of(now)
	epoch := r.ledger.latest(seen)
	if epoch != seen {
		now = old.epochs.start(epoch)
	}
	before, net := r.capacity(epoch), r.ledger.net(epoch)
	r.rates = fresh
	then := reload{at: now, moved: !sameWindow}
	if then.moved {
		then.oldest = old.epochs.oldest(epoch)
		r.move(now, epoch, newEarnings(c.Window))
		epoch = r.ledger.newest
	}
	after := r.capacity(epoch)
	then.factor = part(after, before)
	r.ledger.scale(then.factor)
	owed := after // what is owed at least: all, if there was nothing of which to be a part
	if before > 0 {
		owed = ceil(net, then.factor)
	}
	if net > 0 {
		r.ledger.at(epoch).spent += max(owed-r.ledger.net(epoch), 0)
	}
	r.history.add(then)
	return nil
}

// part is what to multiply by so that before becomes after.
func part(after, before int64) float64 {
	if before <= 0 {
		return 1
	}
	return float64(after) / float64(before)
}

// Drain leaves nothing of the balance: the budget is as if all that was earned had been spent now.
func (r *Ratio) Drain(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch := r.ledger.latest(r.earnings.Load().epochs.of(now))
	r.ledger.at(epoch).spent += max(r.balance(epoch), 0)
}

// move takes what counts in the window to slots of another width. What was earned goes where its slot
// began, and so expires no later than it should; what was spent goes to now, and expires no earlier. It
// requires mu.
func (r *Ratio) move(now time.Duration, epoch uint64, fresh *earnings) {
	old := r.earnings.Load()
	first := min(now-(slots-1)*fresh.epochs.width, now) // now itself, if that is below the least time
	fresh.epochs.begin(first)
	moved := ledger{newest: fresh.epochs.of(now)}
	var spent int64
	for e := epoch - min(epoch, slots-1); e <= epoch; e++ {
		from := &r.ledger.entries[e%slots]
		if from.epoch == e {
			spent += from.spent
		}
		start := old.epochs.start(e)
		if start < first {
			continue
		}
		to := fresh.epochs.of(start)
		fresh.deposits.put(to, old.deposits.of(e))
		if from.epoch == e {
			moved.at(to).bonus += from.bonus
		}
	}
	moved.at(moved.newest).spent = spent
	r.ledger = moved
	r.earnings.Store(fresh)
}

// scale multiplies what was spent and earned, in favour of the server where that is not exact.
func (l *ledger) scale(factor float64) {
	for i := range l.entries {
		e := &l.entries[i]
		e.spent, e.bonus = ceil(e.spent, factor), floor(e.bonus, factor)
	}
}

// bound is more than any budget holds, in micro-tokens, and little enough to be added up.
const bound = 1e17

func floor(n int64, factor float64) int64 { return int64(min(math.Floor(float64(n)*factor), bound)) }
func ceil(n int64, factor float64) int64  { return int64(min(math.Ceil(float64(n)*factor), bound)) }
