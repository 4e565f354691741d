// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/histogram"
)

// The numbers of [Usual]; docs/load.md says them in words.
const (
	UsualPart  = 0.5             // of the responses take at most the usual time
	UsualLeast = 8               // responses until the usual time is known: the first ones may be those of a cold start or of a queue
	UsualAge   = 5 * time.Minute // the minimum time for which a response counts; twice that is the maximum
)

const (
	usualRecent = 3                      // responses in the period without which the usual time stays as it was
	usualSingle = 20                     // responses of which each is recorded, and the usual time read anew
	usualEvery  = 100 * time.Millisecond // from then on, one response in so long is recorded: most write nothing
)

// Usual follows the usual time of a method's accepted responses in the last 5 to 10 minutes. An overload may last for minutes, but a
// service may also become slower for good. The zero value knows none. It is safe for concurrent use.
type Usual struct {
	next atomic.Int64 // no response is recorded before; 0: each is
	time atomic.Int64 // 0: unknown

	mu                sync.Mutex // guards all below
	current, previous histogram.Histogram
	recorded          int           // responses, ever
	until             time.Duration // when current becomes previous; 0: nothing was recorded
	read              time.Duration // when the usual time was read
}

// Record records an accepted response that came at now. If two come at the same time, one is dropped rather than wait.
func (u *Usual) Record(took, now time.Duration) {
	if u.ignores(now) || !u.mu.TryLock() {
		return
	}
	defer u.mu.Unlock()
	u.forget(now)
	u.current.Add(took)
	u.recorded++
	n := u.current.Count() + u.previous.Count()
	if n > usualSingle {
		u.next.Store(int64(now + usualEvery))
		if now-u.read < time.Second {
			return
		}
	}
	u.read = now
	if u.recorded < UsualLeast || n < usualRecent {
		return
	}
	var both histogram.Histogram
	both.AddAll(&u.previous)
	both.AddAll(&u.current)
	u.time.Store(max(int64(both.Quantile(UsualPart)), 1))
}

// ignores reports whether a response at now would not be recorded.
func (u *Usual) ignores(now time.Duration) bool {
	next := u.next.Load()
	return next != 0 && int64(now) < next // times may be negative
}

// forget drops responses that are too old. u.mu must be held.
func (u *Usual) forget(now time.Duration) {
	if u.until == 0 {
		u.until = now + UsualAge
	}
	if now < u.until {
		return
	}
	u.current, u.previous = u.previous, u.current
	u.current.Reset()
	if now-u.until >= UsualAge {
		u.previous.Reset()
	}
	u.until = now + UsualAge
}

// Time returns the usual time, or 0 if too few responses came.
func (u *Usual) Time() time.Duration { return time.Duration(u.time.Load()) }
