// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/policy"
)

// Policy is a [policy.Spec], compiled. It never changes, and is safe for concurrent use.
type Policy struct {
	spec  policy.Spec
	retry policy.RetrySpec // MaxAttempts 1 and no codes if spec has no retries; for a hedging policy, the settings that it shares with retries
	name  string           // in the set; "" without one
	index int              // in its set; -1 without one
	mode  policy.Mode      // in a set, the stricter of its own and the set's
}

// New compiles the spec of a policy ([policy.Policy.Spec]), and keeps its pointers. The zero spec sends one attempt.
func New(s policy.Spec) *Policy {
	p := &Policy{spec: s, retry: policy.RetrySpec{MaxAttempts: 1}, index: -1, mode: policy.StrictestMode(s.Mode)}
	switch h := s.Hedge; {
	case s.Retry != nil:
		p.retry = *s.Retry
	case h != nil:
		p.retry = policy.RetrySpec{MaxAttempts: h.MaxAttempts, RetryableStatusCodes: h.NonFatalStatusCodes, Budget: h.Budget}
	}
	return p
}

// Spec returns the policy's spec. The caller must not change it, nor what it points to.
func (p *Policy) Spec() *policy.Spec { return &p.spec }

// Name returns the name that leads to the policy in its set, or "" without a set.
func (p *Policy) Name() string { return p.name }

// Index returns the policy's index in [Set.Policies], or -1 if it is in no set.
func (p *Policy) Index() int { return p.index }

// Mode returns the mode of the policy's calls.
func (p *Policy) Mode() policy.Mode { return p.mode }

// MaxAttempts returns the maximum number of attempts of a call, including the first: 1 without retries.
func (p *Policy) MaxAttempts() int { return p.retry.MaxAttempts }

// PerAttemptTimeout returns the time after which an attempt may be replaced or hedged, or 0 for never.
func (p *Policy) PerAttemptTimeout() time.Duration { return p.retry.PerAttemptTimeout }

// Backoff returns the backoff; for a hedging policy, which only waits for connections, a usual one.
func (p *Policy) Backoff() policy.Backoff {
	if p.spec.Hedge != nil {
		return resumption
	}
	return p.retry.Backoff
}

// Forbids reports whether a pushback prevents further attempts: it says stop, or its delay is longer than the policy allows.
func (p *Policy) Forbids(push Pushback) bool {
	return push.Stop || push.Delay > cmp.Or(p.spec.MaxPushback, defaults.MaxPushback)
}

// Hedge returns the hedging settings, or nil if the policy does not hedge.
func (p *Policy) Hedge() *policy.HedgeSpec { return p.spec.Hedge }

// Watched reports whether an attempt that takes long may be followed by another one.
func (p *Policy) Watched() bool { return p.spec.Hedge != nil || p.retry.PerAttemptTimeout != 0 }

// Parallel reports whether attempts may run in parallel: hedges, or attempts after a slow one.
func (p *Policy) Parallel() bool {
	return p.spec.Hedge != nil || p.retry.PerAttemptTimeout > 0 && p.retry.OnAttemptTimeout != "RETRY"
}

// Budget returns the name of the budget, or "" for the default one.
func (p *Policy) Budget() string { return p.retry.Budget }

// IdempotencyKey returns the header for each call's idempotency key, or "" if calls have none.
func (p *Policy) IdempotencyKey() string { return p.spec.IdempotencyKey }

// Refuses reports whether calls are refused that can't be answered in time.
func (p *Policy) Refuses() bool {
	return p.spec.Admission == "REFUSE"
}

// MaxConnectionWait returns how long a call waits for a channel that cannot connect before it sends another attempt, or 0 if
// the policy sets waitForReady.
func (p *Policy) MaxConnectionWait() time.Duration {
	if p.spec.WaitForReady != nil {
		return 0
	}
	return cmp.Or(p.spec.MaxConnectionWait, defaults.MaxConnectionWait)
}
