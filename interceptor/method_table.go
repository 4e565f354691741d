// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"maps"
	"sync"
	"sync/atomic"
)

const mostMethods = 4096 // in a table: names of targets and methods may come from users

// methodKey names a method at a target.
type methodKey struct{ target, method string }

// latencyKey names the latencies of a method by what is read of them. A method that finds no place in the table has
// hedgingDelay.
type latencyKey struct {
	methodKey

	quantile float64 // 0: none
}

// methodTable keeps what a Retrier learns of methods at targets, by keys that name both. The zero value is empty. A
// look-up takes no lock and allocates nothing, and a new key copies the table: keys come once, calls often.
type methodTable[K comparable, V any] struct {
	entries atomic.Pointer[map[K]*V]
	mu      sync.Mutex // guards changes of entries
}

// all are the entries.
func (t *methodTable[K, V]) all() map[K]*V {
	if entries := t.entries.Load(); entries != nil {
		return *entries
	}
	return nil
}

// find returns the entry for a key, made if it is new; nil if the table is full.
func (t *methodTable[K, V]) find(key K, fresh func() *V) *V {
	if entries := t.entries.Load(); entries != nil {
		if v, ok := (*entries)[key]; ok {
			return v
		}
		if len(*entries) >= mostMethods {
			return nil
		}
	}
	return t.add(key, fresh)
}

func (t *methodTable[K, V]) add(key K, fresh func() *V) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := map[K]*V{}
	if before := t.entries.Load(); before != nil {
		entries = maps.Clone(*before)
	}
	if v, ok := entries[key]; ok || len(entries) >= mostMethods {
		return v
	}
	v := fresh()
	entries[key] = v
	t.entries.Store(&entries)
	return v
}
