// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what follows a failed attempt of a gRPC call.
//
// A [Policy] is an immutable value that holds for a method. [Policy.Decide] asks it, step by step,
// whether another attempt follows an [Outcome], and when; each refusal has a name, its [Reason].
// A [Set] holds the policies of a program and finds the one for a method; [Load] and [Parse] read
// it from a file in the style of the gRPC service config, [NewSet] makes it from Go values.
//
// Deciding takes time and chance as arguments and starts nothing, so that the interceptor, an
// explanation and a simulation run the same code. How much extra load is allowed is not decided
// here: see package budget.
package policy

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Policy is a checked [Spec]. It never changes, and is safe for concurrent use.
type Policy struct {
	spec     Spec
	retry    RetrySpec // MaxAttempts 1 and no codes if spec has no retries
	name     Name      // the name in the config that leads here; empty for a policy on its own
	index    int       // in its set; -1 for a policy on its own
	reach    reach
	fastPath bool
}

// New checks a spec and makes a policy of it. The error is an [*Error] with all that is wrong.
func New(s Spec) (*Policy, error) {
	var report document.Report
	checkSpec(&report, "", s)
	if err := refusal(&report); err != nil {
		return nil, err
	}
	p := compile(s)
	p.index = -1
	return p, nil
}

// Derive makes a policy that says what p says, with changes: change gets a copy of the [Spec], in which what was left
// open is filled in, as the idempotency that p has in its set ([Set.Lookup]). The error is an [*Error] with all that
// is wrong. The new policy is in no set, so that a change of the policy file does not change it.
func (p *Policy) Derive(change func(*Spec)) (*Policy, error) {
	s := p.spec.clone()
	change(&s)
	return New(s)
}

// compile fills in what a checked spec leaves open.
func compile(s Spec) *Policy {
	s = s.clone()
	s.Admission, s.Criticality = cmp.Or(s.Admission, AdmissionNone), cmp.Or(s.Criticality, CriticalityDefault)
	p := &Policy{spec: s, retry: RetrySpec{MaxAttempts: 1}, reach: reachOf(s.Mode, s.Percent)}
	switch {
	case s.Retry != nil:
		*s.Retry = s.Retry.withDefaults()
		p.retry = *s.Retry
	case s.Hedge != nil:
		p.retry = s.Hedge.hedging()
	}
	p.retry.MaxPushback = cmp.Or(p.retry.MaxPushback, DefaultMaxPushback)
	p.retry.MinAttemptTime = cmp.Or(p.retry.MinAttemptTime, DefaultMinAttemptTime)
	p.retry.MaxConnectionWait = cmp.Or(p.retry.MaxConnectionWait, DefaultMaxConnectionWait)
	if s.Hedge != nil && s.Hedge.Quantile != nil {
		s.Hedge.Quantile.Min = cmp.Or(s.Hedge.Quantile.Min, DefaultMinHedgingDelay)
	}
	p.fastPath = s.Timeout == 0 && s.IdempotencyKey == "" && s.WaitForReady == nil && s.MaxRequestBytes == nil && s.MaxResponseBytes == nil &&
		p.retry.PerAttemptTimeout == 0 && s.Hedge == nil && !p.retry.CommitOnHeaders
	return p
}

// Spec returns what the policy says; the caller must not change what it points to.
func (p *Policy) Spec() *Spec { return &p.spec }

// Name is the name that leads to the policy in its set; empty for everything, or without a set.
func (p *Policy) Name() Name { return p.name }

// Index is the place of the policy in [Set.Policies], -1 if it is in no set.
func (p *Policy) Index() int { return p.index }

// MaxAttempts is the most attempts of a call, the first included: 1 without retries.
func (p *Policy) MaxAttempts() int { return p.retry.MaxAttempts }

// PerAttemptTimeout is the time after which an attempt may be given up for another; 0 is never.
func (p *Policy) PerAttemptTimeout() time.Duration { return p.retry.PerAttemptTimeout }

// MinAttemptTime is the least time before the deadline with which an attempt is sent.
func (p *Policy) MinAttemptTime() time.Duration { return p.retry.MinAttemptTime }

// Backoff is the wait before attempts after the first; that of [DefaultRetry] for a hedging policy, which
// only waits for connections.
func (p *Policy) Backoff() Backoff {
	if p.spec.Hedge != nil {
		return resumption
	}
	return p.retry.Backoff
}

// Forbids reports whether the server's word means that no attempt follows: it says so, or asks for a longer
// wait than the policy allows.
func (p *Policy) Forbids(push Pushback) bool { return push.Stop || push.Delay > p.retry.MaxPushback }

// Hedge is what the policy says of hedging; nil if it does not hedge.
func (p *Policy) Hedge() *HedgeSpec { return p.spec.Hedge }

// Parallel reports whether attempts may run beside each other: hedges, or those that follow a slow one.
func (p *Policy) Parallel() bool {
	return p.spec.Hedge != nil || p.retry.PerAttemptTimeout > 0 && !p.retry.CancelOnTimeout
}

// FastPath reports whether the policy asks for nothing before an attempt has failed: it sets no time limits
// and no call options, and does not look at headers.
func (p *Policy) FastPath() bool { return p.fastPath }

// CommitsOnHeaders reports whether an attempt that brings response headers is not retried.
func (p *Policy) CommitsOnHeaders() bool { return p.retry.CommitOnHeaders }

// Budget is the name of the budget; "" is the default one.
func (p *Policy) Budget() string { return p.retry.Budget }

// IdempotencyKey is the header that carries a key of the call's own; "" if calls carry none.
func (p *Policy) IdempotencyKey() string { return p.spec.IdempotencyKey }

// Refuses reports whether calls are refused that cannot be answered in time.
func (p *Policy) Refuses() bool { return p.spec.Admission > AdmissionNone }

// Admission says of which calls that holds.
func (p *Policy) Admission() Admission { return p.spec.Admission }

// Criticality says which calls are refused first.
func (p *Policy) Criticality() Criticality { return p.spec.Criticality }

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

// ownFor returns the settings for the code that an outcome counts as; nil if it has none of its own.
func (p *Policy) ownFor(out *Outcome) *CodeSpec {
	code := bit(p.codeOf(out))
	for i := range p.retry.PerCode {
		if own := &p.retry.PerCode[i]; own.Codes&code != 0 && own.Info.in(out.Status) {
			return own
		}
	}
	return nil
}

// timeoutFactor is what an attempt after a timeout costs, as a multiple of the usual.
func (r RetrySpec) timeoutFactor() float64 {
	p := &Policy{retry: r}
	_, _, cost := p.with(p.ownFor(&Outcome{Status: status.New(codes.DeadlineExceeded, "")}))
	return cost
}

// with returns the settings after an attempt: the policy's where the code has none of its own.
func (p *Policy) with(own *CodeSpec) (maxAttempts int, b *Backoff, cost float64) {
	maxAttempts, b, cost = p.retry.MaxAttempts, &p.retry.Backoff, 1
	if own != nil {
		maxAttempts, b, cost = cmp.Or(own.MaxAttempts, maxAttempts), cmp.Or(own.Backoff, b), cmp.Or(own.CostFactor, cost)
	}
	return maxAttempts, b, cost
}

// Spec is what a policy says of a method. [New] checks it and makes a [Policy].
type Spec struct {
	Timeout          time.Duration // of the whole call; 0: only the caller's deadline
	WaitForReady     *bool         // nil: as the call says
	MaxRequestBytes  *int          // nil: as the call says
	MaxResponseBytes *int          // nil: as the call says
	Idempotency      Idempotency
	IdempotencyKey   string     // the header that carries a key of the call's own; "": none
	TransparentRetry Permission // gRPC sends calls of undeclared methods again that a server refused as not processed; 0: as the [Config] says
	RefusedRetry     Permission // a server's trailer that says it did not process a call is believed; 0: as the [Config] says
	Admission        Admission
	Criticality      Criticality // of calls that do not say it themselves
	SendCriticality  bool        // each call's criticality is sent to the server
	Mode             Mode
	Percent          *float64   // of the calls, that the mode is for, 0 to 100 with at most four decimals; nil: 100
	Retry            *RetrySpec // nil: one attempt, unless Hedge is there
	Hedge            *HedgeSpec // not beside Retry
}

// clone copies what a spec points to, so that who wrote it cannot change a policy afterwards.
func (s Spec) clone() Spec {
	s.WaitForReady = cloned(s.WaitForReady)
	s.MaxRequestBytes = cloned(s.MaxRequestBytes)
	s.MaxResponseBytes = cloned(s.MaxResponseBytes)
	s.Percent = cloned(s.Percent)
	if s.Hedge = cloned(s.Hedge); s.Hedge != nil {
		s.Hedge.Quantile = cloned(s.Hedge.Quantile)
	}
	if s.Retry = cloned(s.Retry); s.Retry != nil {
		s.Retry.WaitForReadyOnRetry = cloned(s.Retry.WaitForReadyOnRetry)
		s.Retry.Overrides = slices.Clone(s.Retry.Overrides)
		s.Retry.PerCode = slices.Clone(s.Retry.PerCode)
		for i := range s.Retry.PerCode {
			s.Retry.PerCode[i].Backoff = cloned(s.Retry.PerCode[i].Backoff)
		}
	}
	return s
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
	checkEnum(report, prefix+"idempotency", policyv1.Idempotency(s.Idempotency))
	checkEnum(report, prefix+"transparentRetry", policyv1.TransparentRetry(s.TransparentRetry))
	checkEnum(report, prefix+"refusedRetry", policyv1.RefusedRetry(s.RefusedRetry))
	checkIdempotencyKey(report, prefix, s)
	checkEnum(report, prefix+"admission", policyv1.Admission(s.Admission))
	checkEnum(report, prefix+"criticality", policyv1.Criticality(s.Criticality))
	checkMode(report, prefix, s.Mode, s.Percent)
	if s.Hedge != nil {
		checkHedge(report, prefix+"hedgingPolicy.", *s.Hedge)
		if s.Retry != nil {
			report.Errorf(prefix+"hedgingPolicy", nil, "stands beside retryPolicy: keep one of the two")
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
