// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// TableSize bounds each table of a Retrier: the methods that its calls have, each counted once for a target, and the balances of its budgets.
// A method takes about 1 KiB.
const TableSize = 1 << 14

// Table is a bounded map. If it is full, the eighth that was used least recently leaves at the next insertion. It is safe for concurrent
// use. Looking up takes no lock and allocates nothing.
type Table[K comparable, V value] struct {
	Most   int          // values; set before the first use
	values sync.Map     // V by K
	clock  atomic.Int64 // by which uses are compared: each insertion advances it by 2, its own time and that of the uses after it

	mu sync.Mutex // guards changes of values, and below
	n  int        // how many there are
}

// value is a value of a table. It embeds Use.
type value interface{ lastUse() *Use }

// Use says when a value was used, on the table's clock. Every call reads it, and only the first one after an insertion writes.
type Use struct{ at atomic.Int64 }

func (u *Use) lastUse() *Use { return u }

// Find returns the value with a key, and notes its use; nil if there is none.
func (t *Table[K, V]) Find(key K) (value V) {
	found, ok := t.values.Load(key)
	if ok {
		value, _ = found.(V)
		t.Touch(value)
	}
	return value
}

// Touch notes the use of a value that is in the table.
func (t *Table[K, V]) Touch(value V) {
	now, at := t.clock.Load(), &value.lastUse().at
	if at.Load() != now {
		at.Store(now)
	}
}

// Insert adds a value, unless the table has one with the key. It returns the table's value for the key, and the values that it has removed
// to make room.
func (t *Table[K, V]) Insert(key K, value V) (current V, left []V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.values.Load(key)
	if ok {
		current, _ = found.(V)
		t.Touch(current)
		return current, nil
	}
	if t.n >= t.Most {
		left = t.removeOldest()
	}
	value.lastUse().at.Store(t.clock.Add(2) - 1)
	t.values.Store(key, value)
	t.n++
	return value, left
}

// removeOldest removes the eighth of the values that was used least recently. t.mu must be held.
func (t *Table[K, V]) removeOldest() (left []V) {
	type used struct {
		key   K
		value V
		at    int64
	}
	var list []used
	for key, value := range t.All() {
		list = append(list, used{key, value, value.lastUse().at.Load()})
	}
	slices.SortFunc(list, func(a, b used) int { return cmp.Compare(a.at, b.at) })
	for _, u := range list[:max(t.Most/8, 1)] {
		t.values.Delete(u.key)
		left = append(left, u.value)
	}
	t.n -= len(left)
	return left
}

// remove removes the value with a key, if there is one.
func (t *Table[K, V]) remove(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.values.LoadAndDelete(key)
	if had {
		t.n--
	}
}

// All returns the values.
func (t *Table[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.values.Range(func(k, v any) bool {
			key, _ := k.(K)
			value, _ := v.(V)
			return yield(key, value)
		})
	}
}
