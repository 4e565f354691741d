// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Retry configures retries. Words are those of the file, and "" means the default.
type Retry struct {
	MaxAttempts          int // including the first; at least 2
	Backoff              backoff.Config
	RetryableStatusCodes []codes.Code // at least one; UNAVAILABLE includes cut streams, which gRPC reports as INTERNAL
	PerCode              []Code
	PerAttemptTimeout    time.Duration // 0: none
	MessageTimeout       time.Duration // of a server stream that is silent; 0: none
	Budget               string        // a name of Config.Budgets; "" is the default budget, NONE no limit
	// OnAttemptTimeout says what happens after PerAttemptTimeout. With "HEDGE" or "" the slow attempt and the next one run in
	// parallel, and the first success wins. With "RETRY" the slow one is cancelled when the next is sent.
	OnAttemptTimeout string
	// FirstRetry says when the first retry is sent: after the backoff, "BACKOFF" or ""; or within a millisecond, "AT_ONCE", for
	// channels whose retries go to another backend (docs/retry-elsewhere.md).
	FirstRetry string
	// Chain says whether a call is retried that is part of an upstream caller's retry: as usual, "ALLOW" or "", or never, "SUPPRESS".
	Chain string
}

// withDefaults names the kinds that are left at zero, so that equivalent policies are equal. r must be a deep copy.
func (r Retry) withDefaults() Retry {
	r.Backoff = withDefaultKinds(r.Backoff)
	for _, own := range r.PerCode {
		if own.Backoff != nil {
			*own.Backoff = withDefaultKinds(*own.Backoff)
		}
	}
	r.OnAttemptTimeout = cmp.Or(r.OnAttemptTimeout, "HEDGE")
	r.FirstRetry = cmp.Or(r.FirstRetry, "BACKOFF")
	r.Chain = cmp.Or(r.Chain, "ALLOW")
	return r
}

func checkRetry(report *document.Report, prefix string, r Retry) {
	checkAttempts(report, prefix+"maxAttempts", r.MaxAttempts)
	checkBackoff(report, prefix, r.Backoff)
	checkCodes(report, prefix+"retryableStatusCodes", r.RetryableStatusCodes)
	checkPositive(report, report.Either(prefix+"perAttemptTimeout", prefix+"perAttemptRecvTimeout"), r.PerAttemptTimeout)
	checkPositive(report, prefix+"messageTimeout", r.MessageTimeout)
	if r.MessageTimeout > 0 && r.MessageTimeout <= r.PerAttemptTimeout {
		report.Errorf(prefix+"messageTimeout", r.MessageTimeout, "must be more than perAttemptTimeout, %s: a slow attempt is not yet a silent one",
			document.FormatDuration(r.PerAttemptTimeout))
	}
	seen := map[codes.Code]bool{}
	for i, c := range r.PerCode {
		checkCode(report, prefix, fmt.Sprintf("%sperCode[%d].", prefix, i), r, c, seen)
	}
}

// checkAttempts checks the attempts of retries and hedges.
func checkAttempts(report *document.Report, field string, n int) {
	if n < 2 {
		report.Errorf(field, n, "must be at least 2, since it counts the first attempt; for one attempt leave the policy out")
	}
}
