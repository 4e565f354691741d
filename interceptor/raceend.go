// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "github.com/stagger-go/stagger/policy"

// ended takes in how an attempt has ended, and decides what follows. It reports whether that is nothing,
// and no attempt runs any more.
func (r *race) ended(l *runner, err error) (last bool) {
	l.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wake()
	defer func() { r.gates.settle(l.oldAttempt, errLeft, false) }() // if an observer or the classifier panics
	r.leave(&l.lane)
	failed := r.panics != nil || r.over || r.judge(l.reply, err, nil)
	if failed {
		l.oldAttempt = l.settled()
	}
	r.oldAttempt = l.oldAttempt
	switch {
	case r.panics != nil:
		r.gates.settle(l.oldAttempt, errLeft, false)
		r.stop()
	case r.over:
		r.lost(&l.lane, err)
	case !failed:
		r.won(l)
	default:
		r.failed(&l.lane, err, l.place(PlaceLost))
	}
	return r.over && len(r.running) == 0
}

// won takes the answer of an attempt for the call's. It requires mu.
func (r *race) won(l *runner) {
	r.observeAttempt(nil, l.place(PlaceWon))
	r.gates.settle(l.oldAttempt, nil, !r.late())
	r.record(&l.lane)
	r.best, r.err, r.last, r.verdict = &l.lane, nil, nil, policy.Decision{Reason: policy.ReasonSucceeded}
	if l != r.here {
		r.answer = l.reply
	}
	r.stop()
	r.clean = r.state.Attempts == 1 && !r.fired
}

// wake tells the caller's goroutine that something has changed. It requires mu.
func (r *race) wake() {
	select {
	case r.changed <- struct{}{}:
	default: // it has been told, or nobody waits: the channel is nil
	}
}
