// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// modeOf is the mode of a call that begins with a policy, which may belong to rules.
func (r *Retrier) modeOf(of *rules, p *decision.Policy, method string, d *draw) policy.Mode {
	mode, percent := p.Mode(), p.Percent()
	if of.delivered() || !of.own(p) {
		m, part := r.rules.Load().modeOf(p == r.single, method)
		mode, percent = max(mode, m), min(percent, part)
	}
	set, part := r.switches.Load().of(method)
	if !d.within(min(percent, part), r.random) {
		return policy.ModeOff
	}
	return max(mode, set)
}

// modeOf is what the policy file says of a method, whatever policy a call has; without an entry, what it says of all.
func (r *rules) modeOf(unnamed bool, method string) (policy.Mode, float64) {
	if !unnamed {
		if p := r.set.Lookup(method); p != nil {
			return p.Mode(), p.Percent()
		}
	}
	return r.set.Mode(), r.set.Percent()
}

// restricts reports whether any mode of the policy file lets nothing be sent.
func (r *rules) restricts() bool {
	return r.set.Mode() > policy.ModeEnforce ||
		slices.ContainsFunc(r.set.Policies(), func(p *decision.Policy) bool { return p.Mode() > policy.ModeEnforce })
}

// forbids is why no extra attempt may be sent now of a call that began in the given mode; "" if one may.
func (r *Retrier) forbids(began policy.Mode, method string) policy.Reason {
	if r.closed.Load() {
		return policy.ReasonClosed
	}
	mode, _ := r.rules.Load().modeOf(false, method)
	set, _ := r.switches.Load().of(method)
	if began == policy.ModeOff || max(mode, set) > began {
		return policy.ReasonModeOff
	}
	return ""
}

// draw is the place of a call among 100 %, which is drawn once, and only if a percentage asks for it.
type draw struct {
	place float64
	drawn bool
}

// within reports whether the call is among so many percent.
func (d *draw) within(percent float64, random func() float64) bool {
	if percent >= 100 {
		return true
	}
	if !d.drawn {
		d.place, d.drawn = 100*random(), true
	}
	return d.place < percent
}

// waits are the waits of calls for their next attempt.
type waits struct{ current atomic.Pointer[interruption] }

// interruption ends waits.
type interruption struct {
	ctx       context.Context
	interrupt context.CancelFunc
}

func newInterruption() *interruption {
	ctx, cancel := context.WithCancel(context.Background())
	_ = ctx.Done() // makes the channel here and not in a call, which may run in a synctest bubble of its own
	return &interruption{ctx, cancel}
}

// interruption is over as soon as calls are to look again whether an attempt may be sent.
func (w *waits) interruption() context.Context { return w.current.Load().ctx }

// recheck has calls that wait look again whether an attempt may be sent.
func (w *waits) recheck() { w.current.Swap(newInterruption()).interrupt() }
