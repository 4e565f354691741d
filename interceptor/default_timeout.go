// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stagger-go/stagger/internal/clock"
)

// WithDefaultTimeout sets the timeout of unary calls that have no deadline, for policy files without the key defaultTimeout. d must be more
// than 0.
func WithDefaultTimeout(d time.Duration) Option {
	return func(r *Retrier) error {
		if d <= 0 {
			return fmt.Errorf("interceptor: WithDefaultTimeout(%v): must be more than 0s; for no timeout leave the option out", d)
		}
		r.defaultTimeout = d
		return nil
	}
}

// defaultTimeoutBy returns the timeout of unary calls without a deadline by some rules, or 0.
func (r *Retrier) defaultTimeoutBy(of *rules) time.Duration {
	return cmp.Or(of.set.Compiled().DefaultTimeout, r.defaultTimeout)
}

// setDefaultTimeout gives a call that has no deadline the default timeout, if there is one.
func (u *unary) setDefaultTimeout() {
	timeout := u.entry.defaultTimeout
	if timeout == 0 {
		u.noteNoDeadline()
		return
	}
	if _, limited := u.ctx.Deadline(); !limited { // the timeout counts from the call's start
		u.flags |= byDefaultTimeout
		u.ctx, u.cancel = context.WithTimeout(u.ctx, timeout-(clock.Now()-u.start))
	}
}

// noteNoDeadline counts a call that has a policy and no deadline, and warns of the method: a server that hangs would keep the call for ever.
func (u *unary) noteNoDeadline() {
	if _, limited := u.ctx.Deadline(); !limited && u.entry.policy.MaxAttempts() > 1 {
		u.retrier.withoutDeadline.Add(1)
		if warned := &u.entry.warnedNoDeadline; !warned.Load() && warned.CompareAndSwap(false, true) {
			u.retrier.warnOnce(&noDeadline, u.entry.name, u.entry.name)
		}
	}
}
