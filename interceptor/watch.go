// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// watch looks after one attempt that has a timeout of its own. When the timeout fires, the policy
// is asked: if it allows another attempt, this one goes on for the time of the backoff and is then
// abandoned, unless it has been answered; if it does not, this one goes on to the call's deadline.
// An attempt is abandoned only for a better one. A nil watch watches nothing.
type watch struct {
	call   *oldCall
	cancel context.CancelFunc

	// mu guards what follows, and call while the timer's function runs: until stop, the call's own
	// goroutine is inside the attempt and does not touch its state.
	mu       sync.Mutex
	timer    *time.Timer
	stopped  bool            // the attempt has ended
	decision policy.Decision // to retry, once the timeout has fired and the policy has allowed it
	gone     bool            // the attempt was abandoned
}

// watched gives the attempt a context of its own if its timeout could lead to anything.
func (c *oldCall) watched(ctx context.Context) (context.Context, *watch) {
	timeout := c.policy.PerAttemptTimeout()
	if timeout == 0 || c.state.Attempts >= min(c.policy.MaxAttempts(), c.state.MaxAttempts) {
		return ctx, nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= timeout {
		return ctx, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{call: c, cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(timeout, w.fire)
	return ctx, w
}

// fire runs when the timeout has passed, and again when the backoff after it has.
func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if !w.decision.Retry {
		c := w.call
		out := policy.Outcome{Status: timedOut, TimedOut: true}
		w.decision = c.decide(&out)
		if !w.decision.Retry {
			return
		}
		if w.decision.Delay > 0 {
			w.timer.Reset(w.decision.Delay)
			return
		}
	}
	w.gone = true
	w.cancel()
}

// stop ends the watch when the attempt has ended, and releases the attempt's context.
func (w *watch) stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	w.cancel()
}

// abandoned reports whether the attempt was given up for another. Only after stop.
func (w *watch) abandoned() bool { return w != nil && w.gone }

// reason is why no attempt followed one that ended with the given reason: if it ran into the call's
// deadline after its timeout was let pass, then what let it pass. Only after stop.
func (w *watch) reason(ctx context.Context, last policy.Reason) policy.Reason {
	if w == nil || w.decision.Retry || w.decision.Reason == "" || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return last
	}
	return w.decision.Reason
}

// disarm lets the attempt go on for as long as the call does. It reports false if the attempt was
// abandoned already.
func (w *watch) disarm() bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	return !w.gone
}
