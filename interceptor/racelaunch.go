// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "context"

// fire runs in the timer's goroutine, and makes the attempt that is due there.
func (r *race) fire() {
	r.mu.Lock()
	var l *runner
	if r.rings() {
		l = r.launch(false)
	}
	r.mu.Unlock()
	if l == nil {
		return
	}
	err := r.beside(l)
	r.ended(l, err)
}

// launch sends the attempt that was decided on, here in the caller's goroutine and with its reply, or
// beside it with one of its own. It returns nil if the call may not send it now. It requires mu.
func (r *race) launch(here bool) *runner {
	reply := r.reply
	if !here {
		if reply = r.kind.fresh(); reply == nil {
			r.gates.giveBack() // nobody could decode into the caller's, either: gRPC will say so
			r.waiting = false
			return nil
		}
	}
	if !r.allowed() {
		return nil
	}
	l := &runner{lane: lane{oldAttempt: r.another()}, reply: reply}
	l.ctx, l.cancel = context.WithCancel(laterAttempt(r.ctx, l.number-1))
	l.opts = r.optionsAgain(l.oldAttempt)
	if here {
		r.here = l
		clearReply(reply)
	} else if r.changed == nil {
		r.changed = make(chan struct{}, 1)
	}
	r.enter(&l.lane)
	return l
}

// beside makes an attempt outside of the caller's goroutine. If an interceptor further in panics, it does
// so in the caller's goroutine, as it would have without hedging.
func (r *race) beside(l *runner) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errLeft
			r.mu.Lock()
			r.panics = p
			r.mu.Unlock()
		}
	}()
	return r.invoke(l.ctx, r.method, r.req, l.reply, r.cc, l.opts...)
}
