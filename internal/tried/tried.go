// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package tried remembers the backends that a call has used, and finds another one for its next attempt. It does not depend
// on gRPC: package elsewhere and the simulator drive it.
package tried

import (
	"slices"
	"sync"
)

const (
	// MaxBackends bounds the backends that a call remembers. Beyond it, the call forgets the backend that it used longest ago, which
	// is next anyway when all were tried.
	MaxBackends = 8

	// MaxRotation bounds the picks of one rotation, in a fleet with more backends. See Search.
	MaxRotation = 256

	// MaxPicks bounds the picks for one attempt while all name backends that the call has used. If a policy picks one of four
	// backends at random, and the call has used three, the fourth is among so many picks with probability 0.9999.
	MaxPicks = 32
)

// Backends are the backends that the attempts of one call have used. The zero value is empty. It is safe for
// concurrent use, and must not be copied.
type Backends[B comparable] struct {
	mu   sync.Mutex
	n    int
	used [MaxBackends]B // the first n, in order of use
}

// ClaimFirst reports whether the call has used no backend yet, and records this one if so: a call's first attempt goes where the policy
// says.
func (t *Backends[B]) ClaimFirst(backend B) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n > 0 {
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

// Search continues the picks of a later attempt, and returns the index of the pick to use: 0 for the first, or that of a later one.
//
// It makes a whole rotation: as many picks as there are ready backends. So a policy that picks them in turn is afterwards where it was, and
// spreads the first attempts of other calls as before. Search chooses at random among the picks of backends that the call has not used,
// because backends that fail together, such as those of a zone, often follow each other in the policy's order. random returns a number
// in [0, n).
//
// If the call has used the backends of all these picks, Search picks again until it gets an unused one, it has got all ready backends, or
// there are [MaxPicks]. If none is unused, it chooses the one used longest ago. If pick reports false, it chooses among the picks so far.
func (t *Backends[B]) Search(first B, ready int, random func(n int) int, pick func() (B, bool)) int {
	picks := append(make([]B, 0, MaxPicks), first)
	for len(picks) < min(ready, MaxRotation) || len(picks) < MaxPicks && t.missesUnused(picks, ready) {
		backend, ok := pick()
		if !ok {
			break
		}
		picks = append(picks, backend)
	}
	return t.claim(picks, random)
}

// missesUnused reports whether the call has used the backends of all picks, and these aren't all that are ready.
func (t *Backends[B]) missesUnused(picks []B, ready int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, backend := range picks {
		if !slices.Contains(t.used[:t.n], backend) {
			return false
		}
	}
	picked := 0
	for _, backend := range t.used[:t.n] {
		if slices.Contains(picks, backend) {
			picked++
		}
	}
	return picked < ready
}

// claim chooses one of the picks, records its backend as used last, and returns its index. It chooses and records in one step, so that
// only one of two simultaneous hedges gets an unused backend.
func (t *Backends[B]) claim(picks []B, random func(n int) int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	unused := make([]int, 0, MaxPicks)
	oldest, use := 0, MaxBackends
	for i, backend := range picks {
		at := slices.Index(t.used[:t.n], backend)
		switch {
		case at < 0:
			unused = append(unused, i)
		case at < use:
			oldest, use = i, at
		}
	}
	if len(unused) == 0 {
		t.remove(use)
		t.addUsed(picks[oldest])
		return oldest
	}
	chosen := unused[random(len(unused))]
	t.addUsed(picks[chosen])
	return chosen
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
