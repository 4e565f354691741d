// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy has retry policies, and checks them. Most programs need only a file, which interceptor.Watch reads.
//
// A program can also contain its policies, as a [Config] for [New], or as the text of a file:
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
// method. [New] makes a set of a [Config]. [Load] and [Parse] read one from a file in the format of the gRPC service config. For a policy that applies to some calls only,
// use interceptor.Policy with a policy of any set.
//
// # Errors and reasons
//
// An [Error] lists everything that is wrong with a file, each with its line and column. A [Reason] says why a call ended.
package policy

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Policy is a policy of a [Set], checked and compiled. It never changes, and is safe for concurrent use.
type Policy struct {
	compiled spec.Compiled
	name     string
	mode     Mode
	set      *Set // nil: in none
}

// compileOne checks a policy, and returns it: in no set. The error is an [*Error] with all errors in it.
func compileOne(s spec.Policy) (*Policy, error) {
	var report document.Report
	spec.CheckPolicy(&report, "", s)
	if err := report.Err(); err != nil {
		return nil, err
	}
	return newPolicy(s), nil
}

func newPolicy(s spec.Policy) *Policy {
	c := spec.Compile(s)
	return &Policy{compiled: c, mode: Mode(c.Mode)}
}

// Declares reports whether what the policy says of idempotency holds for a full method name: its set has the policy for that method. A
// policy that is borrowed for another method declares nothing of that.
func (p *Policy) Declares(method string) bool { return p.set == nil || p.set.Lookup(method) == p }

// Name returns the name under which the set has the policy: "/service/method", "/service/" or "/".
func (p *Policy) Name() string { return p.name }

// Mode returns the mode of the policy's calls: the policy's own mode, or the mode of the whole set if that is stricter.
func (p *Policy) Mode() Mode { return p.mode }

// Timeout returns the timeout of the whole call, or 0 for none.
func (p *Policy) Timeout() time.Duration { return p.compiled.Timeout }

// Idempotency says whether a method may be retried when an earlier attempt may have taken effect: "ASSUME" means yes, "DECLARED" only if
// the method's descriptor declares it idempotent, and "NONE" no.
func (p *Policy) Idempotency() string { return p.compiled.Idempotency }

// IdempotencyKey returns the header for each call's idempotency key, or "" if calls have none.
func (p *Policy) IdempotencyKey() string { return p.compiled.IdempotencyKey }

// Admission reports whether calls are refused if the service can't respond in time.
func (p *Policy) Admission() bool { return p.compiled.Admission == "REFUSE" }

// MaxAttempts returns the maximum number of attempts of a call, including the first: 1 without extra attempts.
func (p *Policy) MaxAttempts() int { return p.compiled.Extra.MaxAttempts }

// PerAttemptTimeout returns the time after which an attempt may be replaced or hedged, or 0 for never.
func (p *Policy) PerAttemptTimeout() time.Duration { return p.compiled.Extra.PerAttemptTimeout }

// MessageTimeout returns the time after which a silent server stream counts as cut, or 0 for never.
func (p *Policy) MessageTimeout() time.Duration { return p.compiled.Extra.MessageTimeout }

// Budget returns the name of the budget, or "" for the default one.
func (p *Policy) Budget() string { return p.compiled.Extra.Budget }

// Watched reports whether another attempt may follow one that is slow.
func (p *Policy) Watched() bool {
	return p.compiled.Hedge != nil || p.compiled.Extra.PerAttemptTimeout != 0
}

// Parallel reports whether attempts may run in parallel: hedges, or attempts after a slow one.
func (p *Policy) Parallel() bool {
	return p.compiled.Hedge != nil || p.compiled.Extra.PerAttemptTimeout > 0 && p.compiled.Extra.OnAttemptTimeout != "RETRY"
}

// MaxPushback returns the longest delay that a server may ask for.
func (p *Policy) MaxPushback() time.Duration {
	return cmp.Or(p.compiled.MaxPushback, defaults.MaxPushback)
}

// MaxConnectionWait returns how long a call waits before it sends another attempt: for a channel that cannot connect, or, while all attempts
// fail, for an answer. It is 0 if the policy says so, or sets waitForReady to false. With waitForReady: true, gRPC waits for the connection.
func (p *Policy) MaxConnectionWait() time.Duration {
	is := p.compiled
	switch {
	case is.WaitForReady != nil && !*is.WaitForReady:
		return 0
	case is.MaxConnectionWait != nil:
		return *is.MaxConnectionWait
	default:
		return defaults.MaxConnectionWait
	}
}
