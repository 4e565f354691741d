// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package spec has a policy file as plain data: its types, how they are read, and what is wrong with them. Package policy wraps what it compiles
// in the types that users see.
//
// Fields have the names of the file's keys, less what their type says: Initial of [backoff.Config] is initialBackoff. Words such as FULL
// are written as in the file, and "" means the default.
package spec

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Policy is what an entry says of its methods.
type Policy struct {
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

	Mode  string // "ENFORCE" or "", "OBSERVE", "OFF"
	Retry *Retry // nil: one attempt, unless Hedge is set
	Hedge *Hedge // not together with Retry

	// Limits of extra attempts, so only with Retry or Hedge; in a file they are keys of retryPolicy and hedgingPolicy.
	MaxPushback time.Duration // 0: 300 s
	// MaxConnectionWait is how long a call waits before an extra attempt: for a channel that cannot connect, or, while all attempts fail, for an
	// answer. nil: 3 s; 0: it doesn't wait.
	MaxConnectionWait *time.Duration
}

// Clone returns a deep copy with sorted codes, so that the author's values can't change a policy afterwards.
func (s Policy) Clone() Policy {
	s.WaitForReady = cloned(s.WaitForReady)
	s.MaxRequestMessageBytes = cloned(s.MaxRequestMessageBytes)
	s.MaxResponseMessageBytes = cloned(s.MaxResponseMessageBytes)
	s.MaxConnectionWait = cloned(s.MaxConnectionWait)
	s.Hedge = cloned(s.Hedge)
	if s.Hedge != nil {
		s.Hedge.NonFatalStatusCodes = sorted(s.Hedge.NonFatalStatusCodes)
	}
	s.Retry = cloned(s.Retry)
	if s.Retry != nil {
		s.Retry.RetryableStatusCodes = sorted(s.Retry.RetryableStatusCodes)
		s.Retry.PerCode = slices.Clone(s.Retry.PerCode)
		for i := range s.Retry.PerCode {
			s.Retry.PerCode[i].Codes = sorted(s.Retry.PerCode[i].Codes)
			s.Retry.PerCode[i].Backoff = cloned(s.Retry.PerCode[i].Backoff)
		}
	}
	return s
}

// WithDefaults returns a deep copy with defaults for the words, so that equivalent policies are equal.
func (s Policy) WithDefaults() Policy {
	s = s.Clone()
	s.Mode = cmp.Or(s.Mode, "ENFORCE")
	s.Admission = cmp.Or(s.Admission, "NONE")
	if s.Retry != nil {
		*s.Retry = s.Retry.withDefaults()
	}
	if s.Hedge != nil && s.Hedge.Quantile > 0 {
		s.Hedge.MinDelay = cmp.Or(s.Hedge.MinDelay, defaults.MinHedgingDelay)
	}
	return s
}

// budget returns the name of the budget that pays, or "" for the default one.
func (s Policy) budget() string {
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

// CheckPolicy reports all errors in s. Fields are named as in a policy file, under the given path.
func CheckPolicy(report *document.Report, prefix string, s Policy) {
	checkPositive(report, prefix+"timeout", s.Timeout)
	checkBytes(report, prefix+"maxRequestMessageBytes", s.MaxRequestMessageBytes)
	checkBytes(report, prefix+"maxResponseMessageBytes", s.MaxResponseMessageBytes)
	checkIdempotencyKey(report, prefix, s)
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
func checkLimits(report *document.Report, prefix string, s Policy) {
	in := prefix + "retryPolicy"
	switch {
	case s.Hedge != nil:
		in = prefix + "hedgingPolicy"
	case s.Retry == nil && (s.MaxPushback != 0 || s.MaxConnectionWait != nil):
		report.Errorf(in, nil, "is required by maxPushback and maxConnectionWait, which limit extra attempts")
	}
	checkPositive(report, in+".maxPushback", s.MaxPushback)
	if wait := s.MaxConnectionWait; wait != nil && *wait < 0 {
		report.Errorf(in+".maxConnectionWait", *wait, "must be at least 0s, with which calls don't wait")
	}
}

func checkBytes(report *document.Report, field string, n *int) {
	if n != nil && *n < 0 {
		report.Errorf(field, *n, "must not be negative")
	}
}
