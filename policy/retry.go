// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// RetrySpec is what a policy says of retries.
type RetrySpec struct {
	MaxAttempts         int // the first included; at least 2
	Backoff             Backoff
	Codes               CodeSet // retryable codes; at least one
	PerCode             []CodeSpec
	PerAttemptTimeout   time.Duration // 0: none
	OnAttemptTimeout    OnTimeout
	Budget              string // a name of Config.Budgets; "" is the default budget, [NoBudget] none
	CommitOn            CommitOn
	MaxPushback         time.Duration // 0: [DefaultMaxPushback]
	MinAttemptTime      time.Duration // 0: [DefaultMinAttemptTime]
	Chain               Chain
	WaitForReadyOnRetry bool // attempts after the first wait for a connection, if the call has a deadline
	Overrides           []CodeOverride
}

// The settings of a [RetrySpec] that leaves them at zero.
const (
	DefaultMaxPushback    = 300 * time.Second
	DefaultMinAttemptTime = time.Millisecond

	// DefaultMinHedgingDelay is that of a [QuantileSpec].
	DefaultMinHedgingDelay = time.Millisecond
)

// DefaultRetry is where a policy written in Go starts: 3 attempts, full jitter between 0 and 50 ms,
// then 100 ms, after UNAVAILABLE only, the code that every peer retries.
func DefaultRetry() RetrySpec {
	return RetrySpec{
		MaxAttempts: 3,
		Backoff:     Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2},
		Codes:       Codes(codes.Unavailable),
	}
}

// withDefaults names the kinds that are left at zero, so that policies which mean the same are the same.
func (r RetrySpec) withDefaults() RetrySpec {
	r.Backoff = r.Backoff.withDefaults()
	r.PerCode = slices.Clone(r.PerCode)
	for i, own := range r.PerCode {
		if own.Backoff != nil {
			r.PerCode[i].Backoff = new(own.Backoff.withDefaults())
		}
	}
	r.OnAttemptTimeout = cmp.Or(r.OnAttemptTimeout, OnTimeoutHedge)
	r.CommitOn = cmp.Or(r.CommitOn, CommitOnSeen)
	r.Chain = cmp.Or(r.Chain, ChainAllow)
	return r
}

// Chain is what a call may do that is made inside of a retried one. The zero value means [ChainAllow].
type Chain uint8

// The rules for chains of services.
const (
	ChainAllow    Chain = iota + 1 // retries as always
	ChainOnce                      // one retry
	ChainSuppress                  // no retry
)

// String spells the rule as a policy file does.
func (c Chain) String() string { return nameOf(c, "ALLOW", "ALLOW", "ONCE", "SUPPRESS") }

// OnTimeout is what follows when an attempt has used up its per-attempt timeout. The zero value means
// [OnTimeoutHedge].
type OnTimeout uint8

// The actions.
const (
	OnTimeoutRetry OnTimeout = iota + 1 // it is cancelled when the next attempt is sent
	OnTimeoutHedge                      // the next attempt is sent beside it, and the first good answer wins
)

// String spells the action as a policy file does.
func (a OnTimeout) String() string { return nameOf(a, "HEDGE", "RETRY", "HEDGE") }

func convertRetry(report *document.Report, path string, r *policyv1.RetryPolicy) RetrySpec {
	c := RetrySpec{
		MaxAttempts: toInt(r.GetMaxAttempts()),
		Backoff: Backoff{
			Initial:    r.GetInitialBackoff().AsDuration(),
			Max:        r.GetMaxBackoff().AsDuration(),
			Multiplier: r.GetBackoffMultiplier(),
			Growth:     enum[Growth](r.GetGrowth()),
			Jitter:     enum[Jitter](r.GetJitter()),
		},
		Codes:               convertCodes(r.GetRetryableStatusCodes()),
		PerAttemptTimeout:   r.GetPerAttemptTimeout().AsDuration(),
		OnAttemptTimeout:    enum[OnTimeout](r.GetOnAttemptTimeout()),
		Budget:              r.GetBudget(),
		CommitOn:            enum[CommitOn](r.GetCommitOn()),
		MaxPushback:         r.GetMaxPushback().AsDuration(),
		MinAttemptTime:      r.GetMinAttemptTime().AsDuration(),
		Chain:               enum[Chain](r.GetChain()),
		WaitForReadyOnRetry: r.GetWaitForReadyOnRetry(),
	}
	for _, o := range r.GetCodeOverrides() {
		c.Overrides = append(c.Overrides, CodeOverride{
			Codes: convertCodes(o.GetCodes()), Contains: o.GetMessageContains(), As: codes.Code(o.GetAs()), //nolint:gosec // not negative
		})
	}
	for i, own := range r.GetPerCode() {
		c.PerCode = append(c.PerCode, convertCode(report, path, document.Item(path+".perCode", i), own, c.Backoff))
	}
	return c
}

func checkRetry(report *document.Report, path string, r RetrySpec) {
	checkAttempts(report, path+"maxAttempts", r.MaxAttempts)
	checkBackoff(report, path, r.Backoff)
	checkCodes(report, path+"retryableStatusCodes", r.Codes)
	checkPositive(report, path+"perAttemptTimeout", r.PerAttemptTimeout)
	checkPositive(report, path+"maxPushback", r.MaxPushback)
	checkPositive(report, path+"minAttemptTime", r.MinAttemptTime)
	if r.CommitOn > CommitOnHeaders {
		report.Errorf(path+"commitOn", uint8(r.CommitOn), "must be SEEN or HEADERS")
	}
	if r.OnAttemptTimeout > OnTimeoutHedge {
		report.Errorf(path+"onAttemptTimeout", uint8(r.OnAttemptTimeout), "must be HEDGE or RETRY")
	}
	if r.Chain > ChainSuppress {
		report.Errorf(path+"chain", uint8(r.Chain), "must be ALLOW, ONCE or SUPPRESS")
	}
	for i, o := range r.Overrides {
		checkOverride(report, fmt.Sprintf("%scodeOverrides[%d].", path, i), o)
	}
	if r.PerAttemptTimeout > 0 && r.CommitOn == CommitOnHeaders {
		report.Errorf(path+"perAttemptTimeout", r.PerAttemptTimeout,
			"must not stand beside commitOn HEADERS: an attempt whose headers have arrived could be given up; leave one of them out")
	}
	var seen CodeSet
	for i, c := range r.PerCode {
		checkCode(report, path, fmt.Sprintf("%sperCode[%d].", path, i), c, r, seen)
		seen |= c.Codes
	}
}

// checkAttempts holds for retries and for hedges.
func checkAttempts(report *document.Report, field string, n int) {
	if n < 2 {
		report.Errorf(field, n, "must be at least 2, since it counts the first attempt; for one attempt leave the policy out")
	}
}
