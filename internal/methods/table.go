// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"cmp"
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

// Table is a bounded table of methods. The zero value is empty. It is safe for concurrent use. From the third lookup of a method
// on, a lookup takes no lock and allocates nothing: the second one copies the table with all new methods, because methods come
// once and calls often.
//
// A full table drops the least recently used methods, to the second, but none with attempts that
// admission counts as running, and none that was used in the current second. So a flood of new names finds no place,
// and its calls have no method.
type Table struct {
	mu     sync.Mutex // guards changes
	static rows
	others rows
}

// rows are methods.
type rows struct {
	all  atomic.Pointer[map[Key]*Method] // without the new ones
	new  map[Key]*Method                 // those that were looked up once; guarded by Table.mu, like full
	full int64                           // the end of the second in which there is no place for others
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.static.new[key] != nil || r.new[key] != nil {
		t.static.change(nil)
		r.change(nil)
	}
	if m := cmp.Or(t.static.find(key), r.find(key)); m != nil {
		return m
	}
	if r.size() >= most && r.full != second(now)+1 {
		r.change(func(all map[Key]*Method) { evict(all, now) })
	}
	if r.size() >= most {
		r.full = second(now) + 1
		return nil
	}
	m := cmp.Or(t.others.find(key), t.others.new[key])
	if m == nil {
		m = new(Method)
		m.touch(now) // another call may evict at once what was not used
	} else {
		t.others.change(func(all map[Key]*Method) { delete(all, key) })
	}
	if r.new == nil {
		r.new = map[Key]*Method{}
	}
	r.new[key] = m
	return m
}

// size returns the number of methods. Table.mu must be held.
func (r *rows) size() int {
	if all := r.all.Load(); all != nil {
		return len(*all) + len(r.new)
	}
	return len(r.new)
}

// change copies the methods with the new ones, and applies edit, if not nil, to the copy. Table.mu must be held.
func (r *rows) change(edit func(all map[Key]*Method)) {
	if edit == nil && len(r.new) == 0 {
		return
	}
	all := map[Key]*Method{}
	if before := r.all.Load(); before != nil {
		all = maps.Clone(*before)
	}
	maps.Copy(all, r.new)
	if edit != nil {
		edit(all)
	}
	r.all.Store(&all)
	r.new = nil
}

// evict drops the methods that were last used in the same second as the least recently used one, unless that is the current
// second.
func evict(all map[Key]*Method, now time.Duration) {
	oldest := second(now)
	for _, m := range all {
		if used := m.used.Load(); used < oldest && !m.runs() {
			oldest = used
		}
	}
	if oldest == second(now) {
		return
	}
	maps.DeleteFunc(all, func(_ Key, m *Method) bool {
		drop := m.used.Load() == oldest && !m.runs()
		if drop {
			m.evicted.Store(true)
		}
		return drop
	})
}

// All returns the methods of the table.
func (t *Table) All() iter.Seq2[Key, *Method] {
	return func(yield func(Key, *Method) bool) {
		t.mu.Lock()
		t.static.change(nil)
		t.others.change(nil)
		t.mu.Unlock()
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
