// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

// ledger is what was spent in a window, in micro-tokens. It is not safe for concurrent use.
type ledger struct {
	newest  uint64 // the latest epoch seen: spending never goes back
	entries [slots]entry
}

type entry struct {
	epoch uint64
	spent int64 // charged in this epoch and not given back; never negative
	bonus int64 // earned in this epoch
}

// latest moves on to epoch, if that is later. A time that lags behind another goroutine's counts
// as that one, so that a charge and its expiry have one order.
func (l *ledger) latest(epoch uint64) uint64 {
	l.newest = max(l.newest, epoch)
	return l.newest
}

// at is the entry of the newest epoch, emptied if an earlier one stood there.
func (l *ledger) at(epoch uint64) *entry {
	e := &l.entries[epoch%slots]
	if e.epoch != epoch {
		*e = entry{epoch: epoch}
	}
	return e
}

// restore takes back a charge of epoch. If that has left the window, so has the charge, and there
// is nothing to take back. A permit that was not charged here cannot turn spending into earning.
func (l *ledger) restore(epoch uint64, amount int64) {
	if e := &l.entries[epoch%slots]; e.epoch == epoch {
		e.spent -= min(max(amount, 0), e.spent)
	}
}

// net is what was spent less what was earned in the window that ends with epoch.
func (l *ledger) net(epoch uint64) int64 {
	var n int64
	for i := range l.entries {
		if e := &l.entries[i]; within(e.epoch, epoch) {
			n += e.spent - e.bonus
		}
	}
	return n
}
