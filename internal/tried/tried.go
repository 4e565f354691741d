// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package tried remembers the backends that one call went to, and finds another one for its next attempt. It knows
// nothing of gRPC: package balancer drives it, and so does the simulator.
package tried

import (
	"math"
	"slices"
	"sync"
)

// Balancer is the load balancing policy of package balancer, as a loadBalancingConfig names it.
const Balancer = "stagger_retry_elsewhere"

const (
	// MaxBackends bounds what a call remembers. One that goes to more forgets the backend that it used longest ago, which
	// is next anyway when all were tried.
	MaxBackends = 8

	// MaxPicks bounds the picks for one attempt. A policy that picks one of four backends at random, three of which the
	// call went to, names the fourth with probability 0.9999 by then.
	MaxPicks = 32
)

// Backends are those that the attempts of one call went to. The zero value is of a call that begins. It is safe for
// concurrent use, and not copied.
type Backends[B comparable] struct {
	mu   sync.Mutex
	n    int
	used [MaxBackends]B // the first n, in order of use
}

// Claim notes that an attempt goes to the backend, and returns true, unless one went there before. Test and note are
// one step, so that of two hedges that start together only one gets the backend.
func (t *Backends[B]) Claim(backend B) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.used[:t.n], backend) {
		return false
	}
	t.add(backend)
	return true
}

// Search picks on for an attempt whose first pick was not to be claimed, and returns which pick it goes to: the first,
// 0, or one of those that pick has made since. It ends with a backend that the call did not go to, when all of the ready
// ones were named, when pick reports false, and with [MaxPicks]; of those named, the attempt then goes to the one used
// longest ago. Whatever pick does, the claims of other attempts are seen.
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

// claimOldest notes that an attempt goes to that backend of the picks that was used longest ago, and returns the
// index of its first pick. What was forgotten was used before all that is known.
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
	t.add(picks[oldest])
	return oldest
}

func (t *Backends[B]) add(backend B) {
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
