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

// Policy is a checked [Spec]. It never changes, and is safe for concurrent use.
type Policy struct{ spec Spec }

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
	return &Policy{s}
}

// Spec returns a copy of the policy's spec, with defaults; in a set, the idempotency that follows from its name and the config is
// filled in. Change it, and [New] returns another policy, which is in no set. The mode of the set's config is not in
// it: it applies to all calls of a Retrier when they are made.
func (p *Policy) Spec() Spec { return p.spec.clone() }

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
