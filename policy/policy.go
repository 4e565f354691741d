// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy is what retry policies say, as data: types, files, and checks.
//
// A [Policy] is an immutable value that holds for a method: a checked [Spec]. A [Set] holds the policies of a program and
// finds the one for a method; [Load] and [Parse] read it from a file in the style of the gRPC service config, [NewSet]
// makes it from Go values, and [Lint] gives advice on a file. A [Reason] names what ended a call.
//
// Package interceptor carries policies out. How much extra load is allowed is the business of package budget.
package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Policy is a checked [Spec]. It never changes, and is safe for concurrent use.
type Policy struct {
	spec Spec
	name string // in the config, that leads here; "" for a policy on its own
	own  reach  // of the entry alone; zero for a policy on its own
}

// New checks a spec and makes a policy of it. The error is an [*Error] with all that is wrong.
func New(s Spec) (*Policy, error) {
	var report document.Report
	checkSpec(&report, "", s)
	if err := refusal(&report); err != nil {
		return nil, err
	}
	return newPolicy("", s), nil
}

// newPolicy fills in what a checked spec leaves open.
func newPolicy(name string, s Spec) *Policy {
	s = s.clone()
	s.Admission, s.Criticality = cmp.Or(s.Admission, AdmissionNone), cmp.Or(s.Criticality, CriticalityDefault)
	if s.Retry != nil {
		*s.Retry = s.Retry.withDefaults()
	}
	if s.Hedge != nil && s.Hedge.Quantile > 0 {
		s.Hedge.MinDelay = cmp.Or(s.Hedge.MinDelay, defaults.MinHedgingDelay)
	}
	return &Policy{spec: s, name: name}
}

// Spec returns a copy of what the policy says. Of a policy of a set, what its entry leaves to its name and to the config is
// filled in: the idempotency, transparentRetry and refusedRetry, and the stricter mode and smaller percentage of both.
func (p *Policy) Spec() Spec { return p.spec.clone() }

// Name is the name that leads to the policy in its set ([MethodConfig]); "" without a set.
func (p *Policy) Name() string { return p.name }

// Derive makes a policy that says what p says, with changes: change gets a copy of the [Spec] ([Policy.Spec]), but of mode
// and percentage what the entry alone says, since those of the file hold for all calls of a Retrier as they are then. The
// error is an [*Error] with all that is wrong. The new policy is in no set, so that a change of the policy file does not
// change it.
func (p *Policy) Derive(change func(*Spec)) (*Policy, error) {
	s := p.spec.clone()
	if p.own != (reach{}) {
		s.Mode, s.Percent = p.own.said()
	}
	change(&s)
	return New(s)
}

// Spec is what a policy says of a method. [New] checks it and makes a [Policy].
type Spec struct {
	Timeout          time.Duration // of the whole call; 0: only the caller's deadline
	WaitForReady     *bool         // nil: as the call says
	MaxRequestBytes  *int          // nil: as the call says
	MaxResponseBytes *int          // nil: as the call says
	Idempotency      Idempotency
	IdempotencyKey   string // the header that carries a key of the call's own; "": none
	TransparentRetry *bool  // gRPC sends calls of undeclared methods again that a server refused as not processed; nil: as the [Config] says
	RefusedRetry     *bool  // a server's trailer that says it did not process a call is believed; nil: as the [Config] says
	Admission        Admission
	Criticality      Criticality // of calls that do not say it themselves
	SendCriticality  bool        // each call's criticality is sent to the server
	Mode             Mode
	Percent          *float64   // of the calls, that the mode is for, 0 to 100 with at most four decimals; nil: 100
	Retry            *RetrySpec // nil: one attempt, unless Hedge is there
	Hedge            *HedgeSpec // not beside Retry
}

// clone copies what a spec points to, and sorts its codes, so that who wrote it cannot change a policy afterwards.
func (s Spec) clone() Spec {
	s.WaitForReady = cloned(s.WaitForReady)
	s.MaxRequestBytes = cloned(s.MaxRequestBytes)
	s.MaxResponseBytes = cloned(s.MaxResponseBytes)
	s.TransparentRetry, s.RefusedRetry = cloned(s.TransparentRetry), cloned(s.RefusedRetry)
	s.Percent = cloned(s.Percent)
	if s.Hedge = cloned(s.Hedge); s.Hedge != nil {
		s.Hedge.NonFatal = sorted(s.Hedge.NonFatal)
	}
	if s.Retry = cloned(s.Retry); s.Retry != nil {
		s.Retry.WaitForReadyOnRetry = cloned(s.Retry.WaitForReadyOnRetry)
		s.Retry.Codes = sorted(s.Retry.Codes)
		s.Retry.Overrides = slices.Clone(s.Retry.Overrides)
		for i := range s.Retry.Overrides {
			s.Retry.Overrides[i].Codes = sorted(s.Retry.Overrides[i].Codes)
		}
		s.Retry.PerCode = slices.Clone(s.Retry.PerCode)
		for i := range s.Retry.PerCode {
			s.Retry.PerCode[i].Codes = sorted(s.Retry.PerCode[i].Codes)
			s.Retry.PerCode[i].Backoff = cloned(s.Retry.PerCode[i].Backoff)
		}
	}
	return s
}

// refuses reports whether calls are refused that cannot be answered in time.
func (s Spec) refuses() bool { return s.Admission == AdmissionRefuse || s.Admission == AdmissionAuto }

// budget is the name of the budget that pays; "" is the default one.
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

// checkSpec reports everything that is wrong with s. Fields are named as in a policy file, under
// the given path.
func checkSpec(report *document.Report, prefix string, s Spec) {
	checkPositive(report, prefix+"timeout", s.Timeout)
	checkBytes(report, prefix+"maxRequestMessageBytes", s.MaxRequestBytes)
	checkBytes(report, prefix+"maxResponseMessageBytes", s.MaxResponseBytes)
	checkWord(report, prefix+"idempotency", s.Idempotency, policyv1.Idempotency(0))
	checkIdempotencyKey(report, prefix, s)
	checkWord(report, prefix+"admission", s.Admission, policyv1.Admission(0))
	checkWord(report, prefix+"criticality", s.Criticality, policyv1.Criticality(0))
	checkMode(report, prefix, s.Mode, s.Percent)
	if s.Hedge != nil {
		checkHedge(report, prefix+"hedgingPolicy.", *s.Hedge)
		if s.Retry != nil {
			report.Errorf(prefix+"hedgingPolicy", nil, "is given together with retryPolicy: keep one of the two")
		}
	}
	if s.Retry != nil {
		checkRetry(report, prefix+"retryPolicy.", *s.Retry)
	}
}

func checkBytes(report *document.Report, field string, n *int) {
	if n != nil && *n < 0 {
		report.Errorf(field, *n, "must not be negative")
	}
}
