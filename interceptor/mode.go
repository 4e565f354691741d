// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/stagger-go/stagger/policy"
)

// modeOf returns a method's mode in the policy file, whatever policy a call has; without an entry, the file's own.
func (r *rules) modeOf(method string) policy.Mode {
	if p := r.set.Lookup(method); p != nil {
		return p.Mode()
	}
	return r.set.Mode()
}

// restricts reports whether any mode of the policy file prevents extra attempts.
func (r *rules) restricts() bool {
	return r.set.Mode() != policy.ModeEnforce ||
		slices.ContainsFunc(r.set.Policies(), func(p *policy.Policy) bool { return p.Mode() != policy.ModeEnforce })
}

// forbids returns why a call that began in the given mode may not have an extra attempt now, or "".
func (c *call) forbids(began policy.Mode) policy.Reason {
	r, mode := c.retrier, c.entry.mode
	if r.closed.Load() {
		return policy.ReasonClosed
	}
	if c.entry.stale(r) {
		mode = policy.StrictestMode(r.rules.Load().modeOf(c.method), r.switches.Load().modeFor(c.method))
	}
	if began == policy.ModeOff || policy.StrictestMode(mode, began) != began {
		return policy.ReasonModeOff
	}
	return ""
}

// waits are the waits of calls for their next attempt.
type waits struct{ current atomic.Pointer[interruption] }

// interruption ends the waits of one generation.
type interruption struct {
	ctx       context.Context
	interrupt context.CancelFunc
}

func newInterruption() *interruption {
	ctx, cancel := context.WithCancel(context.Background())
	_ = ctx.Done() // makes the channel here, not in a call, which may run in its own synctest bubble
	return &interruption{ctx, cancel}
}

// interruption returns a context that ends when waiting calls must check again whether they may send an attempt.
func (w *waits) interruption() context.Context { return w.current.Load().ctx }

// recheck makes waiting calls check again whether they may send an attempt.
func (w *waits) recheck() { w.current.Swap(newInterruption()).interrupt() }
