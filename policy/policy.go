// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy reads retry policies from files, and checks them. Most programs need only a file, which interceptor.Watch reads.
//
// A program can also contain its policies, as the text of a file:
//
//	set, err := policy.Parse("retry.yaml", []byte(`
//	methodConfig:
//	- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
//	  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 2s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
//	`))
//	if err != nil {
//		return nil, err
//	}
//	return interceptor.New(set)
//
// docs/policy-file.md describes the file.
//
// # Policies and sets
//
// A [Policy] has a method's settings in the file, checked and compiled. A [Set] has the policies of a program, and finds the one for a
// method. [Load] and [Parse] read a set from a file in the format of the gRPC service config. For a policy that applies to some calls only,
// use interceptor.Policy with a policy of any set.
//
// # Errors and reasons
//
// An [Error] lists everything that is wrong with a file, each with its line and column. A [Reason] says why a call ended.
package policy

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/spec"
)

// Policy is a policy of a [Set], checked and compiled. It never changes, and is safe for concurrent use.
type Policy struct {
	spec  spec.Policy
	retry spec.Retry // of extra attempts; for a hedging policy, what hedges share with retries; without extra attempts, one attempt
	name  string
	mode  Mode
	set   *Set // nil: in none
}

// newPolicy returns the policy of a checked spec, with defaults.
func newPolicy(s spec.Policy) *Policy {
	s = s.WithDefaults()
	p := &Policy{spec: s, retry: spec.Retry{MaxAttempts: 1}, mode: Mode(s.Mode)}
	switch {
	case s.Retry != nil:
		p.retry = *s.Retry
	case s.Hedge != nil:
		p.retry = spec.Retry{MaxAttempts: s.Hedge.MaxAttempts, RetryableStatusCodes: s.Hedge.NonFatalStatusCodes, Budget: s.Hedge.Budget}
	}
	return p
}

// Name returns the name under which the set has the policy: "/service/method", "/service/" or "/".
func (p *Policy) Name() string { return p.name }

// Mode returns the mode of the policy's calls: the policy's own mode, or the mode of the whole set if that is stricter.
func (p *Policy) Mode() Mode { return p.mode }

// Timeout returns the timeout of the whole call, or 0 for none.
func (p *Policy) Timeout() time.Duration { return p.spec.Timeout }

// Idempotency says whether a method may be retried when an earlier attempt may have taken effect: "ASSUME" means yes, "DECLARED" only if
// the method's descriptor declares it idempotent, and "NONE" no.
func (p *Policy) Idempotency() string { return p.spec.Idempotency }

// IdempotencyKey returns the header for each call's idempotency key, or "" if calls have none.
func (p *Policy) IdempotencyKey() string { return p.spec.IdempotencyKey }

// Admission reports whether calls are refused if the service can't respond in time.
func (p *Policy) Admission() bool { return p.spec.Admission == "REFUSE" }

// MaxAttempts returns the maximum number of attempts of a call, including the first: 1 without extra attempts.
func (p *Policy) MaxAttempts() int { return p.retry.MaxAttempts }

// PerAttemptTimeout returns the time after which an attempt may be replaced or hedged, or 0 for never.
func (p *Policy) PerAttemptTimeout() time.Duration { return p.retry.PerAttemptTimeout }

// Budget returns the name of the budget, or "" for the default one.
func (p *Policy) Budget() string { return p.retry.Budget }

// Watched reports whether another attempt may follow one that is slow.
func (p *Policy) Watched() bool { return p.spec.Hedge != nil || p.retry.PerAttemptTimeout != 0 }

// Parallel reports whether attempts may run in parallel: hedges, or attempts after a slow one.
func (p *Policy) Parallel() bool {
	return p.spec.Hedge != nil || p.retry.PerAttemptTimeout > 0 && p.retry.OnAttemptTimeout != "RETRY"
}

// MaxPushback returns the longest delay that a server may ask for.
func (p *Policy) MaxPushback() time.Duration {
	return cmp.Or(p.spec.MaxPushback, defaults.MaxPushback)
}

// MaxConnectionWait returns how long a call waits for a channel that cannot connect before it sends another attempt, or 0 if
// the policy sets waitForReady.
func (p *Policy) MaxConnectionWait() time.Duration {
	if p.spec.WaitForReady != nil {
		return 0
	}
	return cmp.Or(p.spec.MaxConnectionWait, defaults.MaxConnectionWait)
}
