// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
)

// hedging is the state of a unary call with parallel attempts. The call's lock guards it.
type hedging struct {
	replies    messageType // of parallel attempts
	timer      *time.Timer // wakes the engine while attempts run; nil while it is not set
	goroutines int         // of the timer, for this call
	caught     caught      // by one of them
}

// prepareHedging allows parallel attempts if each can have its own reply.
func (u *unary) prepareHedging() {
	u.hedging.replies = u.retrier.replyType(u.method, u.reply)
	u.alone = !u.hedging.replies.makes()
}

// setTimer sets the timer to the engine's next time, as long as attempts run. u.mu must be held.
func (u *unary) setTimer(at time.Duration) {
	h, in := &u.hedging, u.due-at
	switch {
	case u.deciding && u.engine.Running() == 0 || u.due == attempts.Never:
		h.stopTimer()
	case in <= 0: // as with streams, no timer
		h.stopTimer()
		u.share()
		go u.fires()
	case h.timer == nil:
		u.share()
		h.timer = time.AfterFunc(in, u.fires)
	default:
		h.timer.Reset(in)
	}
}

// share records that other goroutines may see the call. The caller's goroutine sets it first, and so reads it without the lock.
func (u *unary) share() {
	if !u.shared {
		u.shared = true
	}
}

func (h *hedging) stopTimer() {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.timer = nil
}

// fire runs in the timer's goroutine. It makes the attempt that is due, and its immediate retries.
func (u *unary) fire() {
	var (
		a        *unaryAttempt
		returned bool
	)
	defer func() {
		// The caller's goroutine repeats a panic, as it would have happened without hedging.
		u.leaveBeside(a, !returned, recover())
	}()
	for a = u.fired(); a != nil; {
		a = u.attemptEnded(a, u.try(a))
	}
	returned = true
}

// fired returns the attempt that is due, or nil.
func (u *unary) fired() *unaryAttempt {
	return u.locked(func() *unaryAttempt {
		u.hedging.goroutines++
		if u.join(); u.engine.Running() == 0 { // the caller's goroutine is waiting
			return nil
		}
		return u.woken(false)
	})
}

// leaveBeside ends the timer's goroutine. If it has panicked, the caller's panics too after all attempts have ended.
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
