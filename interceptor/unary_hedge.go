// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
)

// hedging is what a unary call has that sends attempts beside others. The call's lock guards it.
type hedging struct {
	replies    messageType // of attempts beside others
	timer      *time.Timer // wakes the engine while attempts run; nil while it is not set
	seen       bool        // a goroutine of the timer's may see the call
	goroutines int         // of the timer, that look after the call
	caught     caught      // by one of them
}

// prepareHedging lets attempts run beside each other if there can be a reply for each.
func (u *unary) prepareHedging() {
	if u.policy.Parallel() || u.retrier.leftRunning.Load() {
		u.hedging.replies = u.retrier.replyType(u.method, u.reply)
	}
	u.alone = !u.hedging.replies.makes()
}

// setTimer lets the timer wake the engine when that is due, as long as attempts run. u.mu must be held.
func (u *unary) setTimer(now attempts.Now) {
	h, in := &u.hedging, u.due-now.At
	switch {
	case u.engine.Running() == 0 || u.due == attempts.Never:
		h.stopTimer()
	case in <= 0: // as with streams, no timer
		h.stopTimer()
		u.share()
		h.seen = true
		go u.fires()
	case h.timer == nil:
		u.share()
		h.timer = time.AfterFunc(in, u.fires)
	case !h.timer.Reset(in):
		h.seen = true
	}
}

// share notes that other goroutines may see the call. The first time is in the caller's, which then reads it without the lock.
func (u *unary) share() {
	if !u.shared {
		u.shared = true
	}
}

func (h *hedging) stopTimer() {
	if h.timer != nil && !h.timer.Stop() {
		h.seen = true
	}
	h.timer = nil
}

// fire runs in the timer's goroutine. It makes the attempt that is due, and those that are to follow it at once.
func (u *unary) fire() {
	var (
		a        *unaryAttempt
		returned bool
	)
	defer func() {
		// A panic comes up in the caller's goroutine, as it would have without hedging.
		u.leaveBeside(a, !returned, recover())
	}()
	for a = u.fired(); a != nil; {
		a = u.attemptEnded(a, u.try(a))
	}
	returned = true
}

// fired returns the attempt that is due; nil: none.
func (u *unary) fired() *unaryAttempt {
	return u.locked(func() *unaryAttempt {
		u.hedging.goroutines++
		u.hedging.seen = true
		if u.engine.Running() == 0 { // the caller's goroutine waits
			return nil
		}
		return u.woken(false)
	})
}

// leaveBeside ends the timer's goroutine. If that panics, so does the caller's when all attempts have ended.
func (u *unary) leaveBeside(a *unaryAttempt, panicked bool, with any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	h := &u.hedging
	h.goroutines--
	u.changed.Broadcast()
	if panicked {
		h.caught.note(with)
		u.cut(a)
	}
}
