// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a table: for methods that generated code calls, and for methods whose names may come from outside, as in a
// proxy. So the latter never evict one of the client's own methods.
const (
	mostStatic = 4096
	mostOthers = 1024
)

// Key names a method at a target.
type Key struct{ Target, Method string }

// Table is a bounded table of methods. The zero value is empty. It is safe for concurrent use. A lookup takes no lock
// and allocates nothing; a new method copies the table, because methods come once and calls often.
//
// A full table drops the least recently used methods, to the second, but none with attempts that
// admission counts as running, and none that was used in the current second. So a flood of new names finds no place,
// and its calls have no method.
type Table struct {
	mu     sync.Mutex // guards changes
	static rows
	others rows
}

// rows are methods, and the end of the second in which the table has no place for others.
type rows struct {
	all  atomic.Pointer[map[Key]*Method]
	full atomic.Int64
}

func (r *rows) find(key Key) *Method {
	if all := r.all.Load(); all != nil {
		return (*all)[key]
	}
	return nil
}

// Find returns a method, or nil if there is no place for it. Static means that the name is a constant of the program.
func (t *Table) Find(key Key, static bool, now time.Duration) *Method {
	m := t.static.find(key)
	if m == nil && !static {
		m = t.others.find(key)
	}
	if m == nil {
		m = t.insert(key, static, now)
	}
	if m != nil {
		m.touch(now)
	}
	return m
}

// insert adds a method. A method that moves from the names from outside to the static ones keeps its knowledge.
func (t *Table) insert(key Key, static bool, now time.Duration) *Method {
	r, most := &t.others, mostOthers
	if static {
		r, most = &t.static, mostStatic
	}
	if r.full.Load() == second(now)+1 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := r.find(key); m != nil {
		return m
	}
	all := r.copy()
	if len(all) >= most && !evict(all, now) {
		r.full.Store(second(now) + 1)
		return nil
	}
	m := new(Method)
	if known := t.others.find(key); known != nil {
		m = known
		others := t.others.copy()
		delete(others, key)
		t.others.all.Store(&others)
	}
	all[key] = m
	r.all.Store(&all)
	return m
}

func (r *rows) copy() map[Key]*Method {
	if all := r.all.Load(); all != nil {
		return maps.Clone(*all)
	}
	return map[Key]*Method{}
}

// evict drops the methods that were last used in the same second as the least recently used one. It reports
// false if that is the current second.
func evict(all map[Key]*Method, now time.Duration) bool {
	oldest := second(now)
	for _, m := range all {
		if used := m.used.Load(); used < oldest && !m.runs() {
			oldest = used
		}
	}
	if oldest == second(now) {
		return false
	}
	maps.DeleteFunc(all, func(_ Key, m *Method) bool {
		drop := m.used.Load() == oldest && !m.runs()
		if drop {
			m.evicted.Store(true)
		}
		return drop
	})
	return true
}

// All returns the methods of the table.
func (t *Table) All() iter.Seq2[Key, *Method] {
	return func(yield func(Key, *Method) bool) {
		for _, r := range []*rows{&t.static, &t.others} {
			if all := r.all.Load(); all != nil {
				for key, m := range *all {
					if !yield(key, m) {
						return
					}
				}
			}
		}
	}
}
