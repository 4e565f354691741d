// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package tried remembers the backends that a call has used, and finds another one for its next attempt. It does not depend
// on gRPC: package elsewhere and the simulator drive it.
package tried

import (
	"math"
	"slices"
	"sync"
)

const (
	// MaxBackends bounds the backends that a call remembers. Beyond it, the call forgets the backend that it used longest ago, which
	// is next anyway when all were tried.
	MaxBackends = 8

	// MaxPicks bounds the picks for one attempt. If a policy picks one of four backends at random, and the call has used
	// three, the fourth is among so many picks with probability 0.9999.
	MaxPicks = 32
)

// Backends are the backends that the attempts of one call have used. The zero value is empty. It is safe for
// concurrent use, and must not be copied.
type Backends[B comparable] struct {
	mu   sync.Mutex
	n    int
	used [MaxBackends]B // the first n, in order of use
}

// Claim records that an attempt goes to the backend, and returns true, unless an earlier attempt went there. It tests and records in
// one step, so that only one of two simultaneous hedges gets the backend.
func (t *Backends[B]) Claim(backend B) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.used[:t.n], backend) {
		return false
	}
	t.addUsed(backend)
	return true
}

// Last returns the backend of the last attempt; ok is false if there was none.
func (t *Backends[B]) Last() (backend B, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		return backend, false
	}
	return t.used[t.n-1], true
}

// Search picks again for an attempt whose first pick could not be claimed, and returns the index of the pick to use: 0 for the
// first, or that of a later one. It stops at a backend that the call has not used, when all ready
// backends were picked, when pick reports false, and after [MaxPicks]. If no unused backend was found, it returns the
// pick that was used longest ago. It respects concurrent claims of other attempts.
func (t *Backends[B]) Search(first B, ready int, pick func() (B, bool)) int {
	var named [MaxPicks]B
	named[0] = first
	picks, backends := 1, 1
	for backends < ready && picks < MaxPicks {
		backend, ok := pick()
		if !ok {
			break
		}
		if t.Claim(backend) {
			return picks
		}
		if !slices.Contains(named[:picks], backend) {
			backends++
		}
		named[picks] = backend
		picks++
	}
	return t.claimOldest(named[:picks])
}

// claimOldest claims the backend of the picks that was used longest ago, and returns the
// index of its first pick. A forgotten backend was used before all that are remembered.
func (t *Backends[B]) claimOldest(picks []B) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest, use := 0, math.MaxInt
	for i, backend := range picks {
		if at := slices.Index(t.used[:t.n], backend); at < use {
			oldest, use = i, at
		}
	}
	if use >= 0 {
		t.remove(use)
	}
	t.addUsed(picks[oldest])
	return oldest
}

func (t *Backends[B]) addUsed(backend B) {
	if t.n == MaxBackends {
		t.remove(0)
	}
	t.used[t.n] = backend
	t.n++
}

func (t *Backends[B]) remove(i int) {
	copy(t.used[i:], t.used[i+1:t.n])
	t.n--
}
