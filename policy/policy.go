// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy has retry policies as data: types, files, and checks. Most programs need only a file, which interceptor.Watch reads.
//
// A program can also have its policies inside of it, as the text of a file:
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
// # Policies and sets
//
// A [Policy] is an immutable, checked [Spec] for a method. A [Set] has the policies of a program and finds the one for a
// method. [Load] and [Parse] read it from a file in the format of the gRPC service config, and [NewSet] creates it from Go values.
// docs/policy-file.md describes the file. Go's fields have the names of its keys, less what their type says: [Backoff.Initial] is
// initialBackoff. Words such as FULL are written as in the file.
//
// # Errors and reasons
//
// An [Error] lists everything that is wrong with a file or a config, each with its place. A [Reason] is the reason why a call ended.
package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
)

// Policy is a checked [Spec], compiled. It never changes, and is safe for concurrent use. What its methods return must not be changed.
type Policy struct {
	spec  Spec
	retry RetrySpec // see Retry
	name  string
	mode  Mode
}

// New checks a spec and returns its policy. The error is an [*Error] with all errors in it.
func New(s Spec) (*Policy, error) {
	var report document.Report
	checkSpec(&report, "", s)
	if err := report.Err(); err != nil {
		return nil, err
	}
	return newPolicy(s), nil
}

// newPolicy returns the policy of a checked spec, with defaults.
func newPolicy(s Spec) *Policy {
	s = s.clone()
	s.Mode = cmp.Or(s.Mode, ModeEnforce)
	s.Admission = cmp.Or(s.Admission, "NONE")
	if s.Retry != nil {
		*s.Retry = s.Retry.withDefaults()
	}
	if s.Hedge != nil && s.Hedge.Quantile > 0 {
		s.Hedge.MinDelay = cmp.Or(s.Hedge.MinDelay, defaults.MinHedgingDelay)
	}
	p := &Policy{spec: s, retry: RetrySpec{MaxAttempts: 1}, mode: s.Mode}
	switch {
	case s.Retry != nil:
		p.retry = *s.Retry
	case s.Hedge != nil:
		p.retry = RetrySpec{MaxAttempts: s.Hedge.MaxAttempts, RetryableStatusCodes: s.Hedge.NonFatalStatusCodes, Budget: s.Hedge.Budget}
	}
	return p
}

// Spec returns a copy of the policy's spec, with defaults; in a set, the idempotency that follows from its name and the config is
// filled in. Change it, and [New] returns another policy, which is in no set. The mode of the set's config is not in
// it: see Mode.
func (p *Policy) Spec() Spec { return p.spec.clone() }

// Name returns the name that leads to the policy in its set, as in [MethodConfig]; "" for a policy of [New].
func (p *Policy) Name() string { return p.name }

// Mode returns the mode of the policy's calls: its own, or that of its set's config, if that is stricter.
func (p *Policy) Mode() Mode { return p.mode }

// Timeout returns the timeout of the whole call, or 0 for none.
func (p *Policy) Timeout() time.Duration { return p.spec.Timeout }

// Idempotency returns what the policy says of its methods, as in [Spec], or "".
func (p *Policy) Idempotency() string { return p.spec.Idempotency }

// IdempotencyKey returns the header for each call's idempotency key, or "" if calls have none.
func (p *Policy) IdempotencyKey() string { return p.spec.IdempotencyKey }

// Admission reports whether calls are refused that can't be answered in time.
func (p *Policy) Admission() bool { return p.spec.Admission == "REFUSE" }

// Retry returns the settings of extra attempts. Those of a hedging policy say what it shares with retries; a policy without extra attempts
// has one attempt.
func (p *Policy) Retry() *RetrySpec { return &p.retry }

// Hedge returns the settings of a hedging policy, or nil.
func (p *Policy) Hedge() *HedgeSpec { return p.spec.Hedge }

// MaxAttempts returns the maximum number of attempts of a call, including the first: 1 without extra attempts.
func (p *Policy) MaxAttempts() int { return p.retry.MaxAttempts }

// PerAttemptTimeout returns the time after which an attempt may be replaced or hedged, or 0 for never.
func (p *Policy) PerAttemptTimeout() time.Duration { return p.retry.PerAttemptTimeout }

// Budget returns the name of the budget, or "" for the default one.
func (p *Policy) Budget() string { return p.retry.Budget }

// Watched reports whether an attempt that takes long may be followed by another one.
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

// Spec is the specification of a policy. [New] checks it and returns a [Policy].
type Spec struct {
	Timeout                 time.Duration // of the whole call; 0: only the caller's deadline
	WaitForReady            *bool         // nil: the call's own setting
	MaxRequestMessageBytes  *int          // nil: the call's own setting
	MaxResponseMessageBytes *int          // nil: the call's own setting

	// Idempotency says whether a method may be retried when an earlier attempt may have taken effect: "ASSUME" yes, as gRPC assumes;
	// "DECLARED" if the descriptor's idempotency_level says so; "NONE" no. "" is the config's, else ASSUME for names with a method, and
	// DECLARED for others.
	Idempotency    string
	IdempotencyKey string // the header for each call's idempotency key; "": none
	// Admission says whether a call is refused that would not be answered before its deadline, judged by the last responses: "REFUSE", or
	// "NONE" or "" for no call.
	Admission string

	Mode  Mode
	Retry *RetrySpec // nil: one attempt, unless Hedge is set
	Hedge *HedgeSpec // not together with Retry

	// Limits of extra attempts, so only with Retry or Hedge; in a file they are keys of retryPolicy and hedgingPolicy.
	MaxPushback       time.Duration // 0: 300 s
	MaxConnectionWait time.Duration // for a channel that cannot connect, before attempts after the first; 0: 3 s
}

// clone returns a deep copy with sorted codes, so that the author's values can't change a policy afterwards.
func (s Spec) clone() Spec {
	s.WaitForReady = cloned(s.WaitForReady)
	s.MaxRequestMessageBytes = cloned(s.MaxRequestMessageBytes)
	s.MaxResponseMessageBytes = cloned(s.MaxResponseMessageBytes)
	if s.Hedge = cloned(s.Hedge); s.Hedge != nil {
		s.Hedge.NonFatalStatusCodes = sorted(s.Hedge.NonFatalStatusCodes)
	}
	if s.Retry = cloned(s.Retry); s.Retry != nil {
		s.Retry.RetryableStatusCodes = sorted(s.Retry.RetryableStatusCodes)
		s.Retry.PerCode = slices.Clone(s.Retry.PerCode)
		for i := range s.Retry.PerCode {
			s.Retry.PerCode[i].Codes = sorted(s.Retry.PerCode[i].Codes)
			s.Retry.PerCode[i].Backoff = cloned(s.Retry.PerCode[i].Backoff)
		}
	}
	return s
}

// budget returns the name of the budget that pays, or "" for the default one.
func (s Spec) budget() string {
	switch {
	case s.Retry != nil:
		return s.Retry.Budget
	case s.Hedge != nil:
		return s.Hedge.Budget
	default:
		return ""
	}
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// checkSpec reports all errors in s. Fields are named as in a policy file, under the given path.
func checkSpec(report *document.Report, prefix string, s Spec) {
	checkPositive(report, prefix+"timeout", s.Timeout)
	checkBytes(report, prefix+"maxRequestMessageBytes", s.MaxRequestMessageBytes)
	checkBytes(report, prefix+"maxResponseMessageBytes", s.MaxResponseMessageBytes)
	checkWord(report, prefix+"idempotency", s.Idempotency, idempotencies...)
	checkIdempotencyKey(report, prefix, s)
	checkWord(report, prefix+"mode", s.Mode, modes...)
	checkWord(report, prefix+"admission", s.Admission, admissions...)
	if s.Hedge != nil {
		checkHedge(report, prefix+"hedgingPolicy.", *s.Hedge)
		if s.Retry != nil {
			report.Errorf(prefix+"hedgingPolicy", nil, "is given together with retryPolicy: keep one of the two")
		}
	}
	if s.Retry != nil {
		checkRetry(report, prefix+"retryPolicy.", *s.Retry)
	}
	checkLimits(report, prefix, s)
}

// checkLimits checks the limits of extra attempts.
func checkLimits(report *document.Report, prefix string, s Spec) {
	in := prefix + "retryPolicy"
	switch {
	case s.Hedge != nil:
		in = prefix + "hedgingPolicy"
	case s.Retry == nil && cmp.Or(s.MaxPushback, s.MaxConnectionWait) != 0:
		report.Errorf(in, nil, "is required by maxPushback and maxConnectionWait, which limit extra attempts")
	}
	checkPositive(report, in+".maxPushback", s.MaxPushback)
	checkPositive(report, in+".maxConnectionWait", s.MaxConnectionWait)
}

func checkBytes(report *document.Report, field string, n *int) {
	if n != nil && *n < 0 {
		report.Errorf(field, *n, "must not be negative")
	}
}
