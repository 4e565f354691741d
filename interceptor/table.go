// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"container/heap"
	"iter"
	"sync"
	"sync/atomic"
)

// mostKept bounds each table of a Retrier: the methods that its calls have, each counted once for a target, and the balances of its budgets.
// A method takes about 1 KiB.
const mostKept = 1 << 14

// table is a bounded map. If it is full, the value that was used least recently leaves at the next insertion. It is safe for concurrent
// use. Looking up takes no lock and allocates nothing.
type table[K comparable, V kept] struct {
	most   int
	values sync.Map     // V by K
	clock  atomic.Int64 // by which uses are compared: each insertion advances it by 2, its own time and that of the uses after it

	mu    sync.Mutex // guards changes of values, and below
	order uses[K, V]
}

// kept is a value of a table: it embeds use.
type kept interface{ lastUse() *use }

// use says when a value was used. Every call reads it, and only the first one after an insertion writes.
type use struct {
	at    atomic.Int64 // on the table's clock
	known int64        // at, when it was last compared; the table's lock guards it
	index int          // in uses; the table's lock guards it
}

func (u *use) lastUse() *use { return u }

// find returns the value with a key, and notes its use; nil if there is none.
func (t *table[K, V]) find(key K) (value V) {
	found, ok := t.values.Load(key)
	if ok {
		value, _ = found.(V)
		t.touch(value)
	}
	return value
}

// touch notes the use of a value.
func (t *table[K, V]) touch(value V) {
	now, at := t.clock.Load(), &value.lastUse().at
	if at.Load() != now {
		at.Store(now)
	}
}

// insert adds a value, unless there is one with the key. It returns that which is there then, and the one that has left for it with its key,
// nil if there was room.
func (t *table[K, V]) insert(key K, value V) (there V, leftKey K, left V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.values.Load(key)
	if ok {
		there, _ = found.(V)
		t.touch(there)
		return there, leftKey, left
	}
	if len(t.order) >= t.most {
		leftKey, left = t.removeOldest()
	}
	u := value.lastUse()
	u.known = t.clock.Add(2) - 1
	u.at.Store(u.known)
	t.values.Store(key, value)
	heap.Push(&t.order, usedValue[K, V]{key, value})
	return value, leftKey, left
}

// removeOldest removes the value that was used least recently. t.mu must be held.
func (t *table[K, V]) removeOldest() (K, V) {
	for {
		oldest := t.order[0]
		u := oldest.value.lastUse()
		at := u.at.Load()
		if u.known == at { // all others were used later
			heap.Pop(&t.order)
			t.values.Delete(oldest.key)
			return oldest.key, oldest.value
		}
		u.known = at
		heap.Fix(&t.order, 0)
	}
}

// remove removes the value with a key, if there is one.
func (t *table[K, V]) remove(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.values.LoadAndDelete(key)
	if ok {
		value, _ := found.(V)
		heap.Remove(&t.order, value.lastUse().index)
	}
}

// all returns the values.
func (t *table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.values.Range(func(k, v any) bool {
			key, _ := k.(K)
			value, _ := v.(V)
			return yield(key, value)
		})
	}
}

// uses is a heap of a table's values, the one that was used least recently first, as far as its uses are known.
type uses[K comparable, V kept] []usedValue[K, V]

type usedValue[K comparable, V kept] struct {
	key   K
	value V
}

var _ heap.Interface = (*uses[string, *use])(nil)

// Len implements [heap.Interface].
func (u *uses[K, V]) Len() int { return len(*u) }

// Less implements [heap.Interface].
func (u *uses[K, V]) Less(i, j int) bool {
	return (*u)[i].value.lastUse().known < (*u)[j].value.lastUse().known
}

// Swap implements [heap.Interface].
func (u *uses[K, V]) Swap(i, j int) {
	all := *u
	all[i], all[j] = all[j], all[i]
	all[i].value.lastUse().index = i
	all[j].value.lastUse().index = j
}

// Push implements [heap.Interface].
func (u *uses[K, V]) Push(added any) {
	v, _ := added.(usedValue[K, V])
	v.value.lastUse().index = len(*u)
	*u = append(*u, v)
}

// Pop implements [heap.Interface].
func (u *uses[K, V]) Pop() any {
	all := *u
	last := all[len(all)-1]
	all[len(all)-1] = usedValue[K, V]{}
	*u = all[:len(all)-1]
	return last
}
