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
	retry policy.RetrySpec // MaxAttempts 1 and no codes if spec has no retries; of a hedging policy, what it shares with retries
	name  string           // in the config, that leads here; "" for a policy on its own
	index int              // in its set; -1 for a policy on its own
	reach reach
}

// New compiles what a policy says ([policy.Policy.Spec]), and keeps what it points to. The zero value of a spec is one attempt.
func New(s policy.Spec) *Policy {
	p := &Policy{spec: s, retry: policy.RetrySpec{MaxAttempts: 1}, index: -1, reach: reachOf(s.Mode, s.Percent)}
	switch h := s.Hedge; {
	case s.Retry != nil:
		p.retry = *s.Retry
	case h != nil:
		p.retry = policy.RetrySpec{
			MaxAttempts: h.MaxAttempts, Codes: h.NonFatal, Budget: h.Budget,
			MaxPushback: h.MaxPushback, MinAttemptTime: h.MinAttemptTime, MaxConnectionWait: h.MaxConnectionWait,
		}
	}
	p.retry.MaxPushback = cmp.Or(p.retry.MaxPushback, defaults.MaxPushback)
	p.retry.MinAttemptTime = cmp.Or(p.retry.MinAttemptTime, defaults.MinAttemptTime)
	p.retry.MaxConnectionWait = cmp.Or(p.retry.MaxConnectionWait, defaults.MaxConnectionWait)
	return p
}

// reach is what calls a mode holds for.
type reach struct {
	mode    policy.Mode
	percent float64 // of the calls; the others are off
}

func reachOf(m policy.Mode, percent *float64) reach {
	r := reach{max(m, policy.ModeEnforce), 100}
	if percent != nil {
		r.percent = *percent
	}
	return r
}

// Spec is what the policy says; the caller must not change it, nor what it points to.
func (p *Policy) Spec() *policy.Spec { return &p.spec }

// Name is the name that leads to the policy in its set; empty for everything, or without a set.
func (p *Policy) Name() string { return p.name }

// Index is the place of the policy in [Set.Policies], -1 if it is in no set.
func (p *Policy) Index() int { return p.index }

// Mode is what becomes of the extra attempts of the policy's calls.
func (p *Policy) Mode() policy.Mode { return p.reach.mode }

// Percent is the share of the policy's calls that its mode is for, 0 to 100. The other calls are [policy.ModeOff].
func (p *Policy) Percent() float64 { return p.reach.percent }

// MaxAttempts is the most attempts of a call, the first included: 1 without retries.
func (p *Policy) MaxAttempts() int { return p.retry.MaxAttempts }

// PerAttemptTimeout is the time after which an attempt may be given up for another; 0 is never.
func (p *Policy) PerAttemptTimeout() time.Duration { return p.retry.PerAttemptTimeout }

// MinAttemptTime is the least time before the deadline with which an attempt is sent.
func (p *Policy) MinAttemptTime() time.Duration { return p.retry.MinAttemptTime }

// Backoff is the wait before attempts after the first; that of [policy.DefaultRetry] for a hedging policy, which
// only waits for connections.
func (p *Policy) Backoff() policy.Backoff {
	if p.spec.Hedge != nil {
		return resumption
	}
	return p.retry.Backoff
}

// Forbids reports whether the server's word means that no attempt follows: it says so, or asks for a longer
// wait than the policy allows.
func (p *Policy) Forbids(push Pushback) bool { return push.Stop || push.Delay > p.retry.MaxPushback }

// Hedge is what the policy says of hedging; nil if it does not hedge.
func (p *Policy) Hedge() *policy.HedgeSpec { return p.spec.Hedge }

// Parallel reports whether attempts may run beside each other: hedges, or those that follow a slow one.
func (p *Policy) Parallel() bool {
	return p.spec.Hedge != nil || p.retry.PerAttemptTimeout > 0 && !p.retry.CancelOnTimeout
}

// CommitsOnHeaders reports whether an attempt that brings response headers is not retried.
func (p *Policy) CommitsOnHeaders() bool { return p.retry.CommitOnHeaders }

// Budget is the name of the budget; "" is the default one.
func (p *Policy) Budget() string { return p.retry.Budget }

// IdempotencyKey is the header that carries a key of the call's own; "" if calls carry none.
func (p *Policy) IdempotencyKey() string { return p.spec.IdempotencyKey }

// Refuses reports whether calls are refused that cannot be answered in time.
func (p *Policy) Refuses() bool { return p.Admission() != policy.AdmissionNone }

// Admission says of which calls that holds.
func (p *Policy) Admission() policy.Admission { return cmp.Or(p.spec.Admission, policy.AdmissionNone) }

// Criticality says which calls are refused first.
func (p *Policy) Criticality() policy.Criticality {
	return cmp.Or(p.spec.Criticality, policy.CriticalityDefault)
}

// SendsCriticality reports whether the criticality of each call is sent to the server.
func (p *Policy) SendsCriticality() bool { return p.spec.SendCriticality }

// WaitForReadyOnRetry reports whether attempts after the first wait in gRPC for a connection.
func (p *Policy) WaitForReadyOnRetry() bool {
	return p.retry.WaitForReadyOnRetry != nil && *p.retry.WaitForReadyOnRetry
}

// MaxConnectionWait is how long a call waits for a channel that cannot connect before it sends another attempt;
// 0 if the policy lets gRPC wait, or nobody.
func (p *Policy) MaxConnectionWait() time.Duration {
	if p.spec.WaitForReady != nil || p.retry.WaitForReadyOnRetry != nil {
		return 0
	}
	return p.retry.MaxConnectionWait
}
