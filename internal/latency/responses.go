// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"sync/atomic"
	"time"
)

// The numbers of [Responses]; docs/load.md says them in words.
const (
	Remembered   = 5                      // responses of a target
	Age          = 10 * time.Second       // older ones don't count: what they show may be over
	FastInterval = 100 * time.Millisecond // between fast responses: most successes then write nothing, and a burst doesn't hide a queue
)

// Responses are the last responses of a target to any method: each was long or fast. The zero value has none. It is safe for
// concurrent use. If two are recorded at the same time, the time of one may be read with the length of the other.
type Responses struct {
	count atomic.Uint32
	last  [Remembered]struct {
		at   atomic.Int64
		kind atomic.Uint32
	}
}

// The kinds of responses; 0: none.
const (
	kindFast = iota + 1
	kindLong
)

// Record records a response that came at now.
func (r *Responses) Record(long bool, now time.Duration) {
	kind := uint32(kindFast)
	if long {
		kind = kindLong
	} else if r.fastJustNow(now) {
		return
	}
	place := &r.last[(r.count.Add(1)-1)%Remembered]
	place.at.Store(int64(now))
	place.kind.Store(kind)
}

// fastJustNow reports whether the newest response is fast, and so recent that another fast one is not recorded.
func (r *Responses) fastJustNow(now time.Duration) bool {
	newest := &r.last[(r.count.Load()-1)%Remembered]
	return newest.kind.Load() == kindFast && now-time.Duration(newest.at.Load()) < FastInterval
}

// Counts returns how many of the responses that count were fast, and how many were long.
func (r *Responses) Counts(now time.Duration) (fast, long int) {
	for i := range r.last {
		place := &r.last[i]
		kind := place.kind.Load()
		switch {
		case kind == 0 || now-time.Duration(place.at.Load()) > Age:
		case kind == kindLong:
			long++
		default:
			fast++
		}
	}
	return fast, long
}

// Evidence is what the last responses of a target show about another attempt.
type Evidence struct {
	Queue bool // all were long: the servers have a queue, and another attempt would make it longer
	Well  bool // some were fast, and none was long: a server that does not respond hangs, and has no queue
	Fast  bool // it may be sent beside a slow one: the method's usual time is known, and few of the last responses were long
}
