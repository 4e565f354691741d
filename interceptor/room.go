// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "sync/atomic"

// room bounds how many calls of a Retrier wait in a backoff at a time.
type room struct {
	most    atomic.Int64
	waiting atomic.Int64
}

// spot is the place of one call; nobody else touches it.
type spot struct {
	room  *room
	taken bool
}

// Enter implements [policy.WaitLimit].
func (p *spot) Enter() bool {
	if p.taken {
		return true
	}
	for {
		waiting := p.room.waiting.Load()
		if waiting >= p.room.most.Load() {
			return false
		}
		if p.room.waiting.CompareAndSwap(waiting, waiting+1) {
			p.taken = true
			return true
		}
	}
}

// Leave implements [policy.WaitLimit].
func (p *spot) Leave() {
	if p.taken {
		p.room.waiting.Add(-1)
		p.taken = false
	}
}
