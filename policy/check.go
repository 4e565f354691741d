// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/document"
)

// checkSpec reports everything that is wrong with s. Fields are named as in a policy file, under
// the given path.
func checkSpec(report *document.Report, path string, s Spec) {
	checkPositive(report, path+"timeout", s.Timeout)
	checkBytes(report, path+"maxRequestMessageBytes", s.MaxRequestBytes)
	checkBytes(report, path+"maxResponseMessageBytes", s.MaxResponseBytes)
	if s.Idempotency > IdempotencyNone {
		report.Errorf(path+"idempotency", uint8(s.Idempotency), "must be ASSUME, DECLARED or NONE")
	}
	checkIdempotencyKey(report, path, s)
	if s.Hedge != nil {
		checkHedge(report, path+"hedgingPolicy.", *s.Hedge)
		if s.Retry != nil {
			report.Errorf(path+"hedgingPolicy", nil, "stands beside retryPolicy: keep one of the two")
		}
	}
	if s.Retry != nil {
		checkRetry(report, path+"retryPolicy.", *s.Retry)
	}
}

func checkBytes(report *document.Report, field string, n *int) {
	if n != nil && *n < 0 {
		report.Errorf(field, *n, "must not be negative")
	}
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

// checkCode checks the settings of some codes; seen are the codes that earlier settings are for.
func checkCode(report *document.Report, policy, path string, c CodeSpec, r RetrySpec, seen CodeSet) {
	checkCodes(report, path+"codes", c.Codes)
	if extra := c.Codes &^ r.Codes; extra != 0 && r.Codes != 0 && report.Whole(policy+"retryableStatusCodes") {
		report.Errorf(path+"codes", extra, "must stand in retryableStatusCodes too, else it is never retried")
	}
	if twice := c.Codes & seen; twice != 0 {
		report.Errorf(path+"codes", twice, "stands in another perCode entry too; only one may have it")
	}
	if n := c.MaxAttempts; n < 0 || n == 0 && report.Written(path+"maxAttempts") || n > r.MaxAttempts && r.MaxAttempts >= 2 {
		report.Errorf(path+"maxAttempts", n, "must be 1 to the policy's maxAttempts, %d", max(r.MaxAttempts, 2))
	}
	if c.Backoff != nil {
		checkBackoff(report, path, *c.Backoff)
	}
	if c.CostFactor != 0 || report.Written(path+"costFactor") {
		checkNumber(report, path+"costFactor", c.CostFactor, 0.01, budget.MaxFactor, 2)
	}
}

func checkBackoff(report *document.Report, path string, b Backoff) {
	if b.Initial <= 0 {
		report.Errorf(path+"initialBackoff", b.Initial, "must be more than 0s")
	}
	if b.Max <= 0 {
		report.Errorf(path+"maxBackoff", b.Max, "must be more than 0s")
	}
	switch {
	case !(b.Multiplier > 0) || math.IsInf(b.Multiplier, 0): // NaN too
		report.Errorf(path+"backoffMultiplier", b.Multiplier, "must be a number more than 0")
	case b.Growth == GrowthFixed && b.Multiplier != 1:
		report.Errorf(path+"backoffMultiplier", b.Multiplier, "must be 1 with growth FIXED, so that gRPC reads the same")
	}
	if b.Growth > GrowthFixed {
		report.Errorf(path+"growth", uint8(b.Growth), "must be EXPONENTIAL, LINEAR or FIXED")
	}
	if b.Jitter > JitterProportional {
		report.Errorf(path+"jitter", uint8(b.Jitter), "must be NONE, FULL, EQUAL, DECORRELATED or PROPORTIONAL")
	}
}

func checkCodes(report *document.Report, field string, s CodeSet) {
	switch {
	case s == 0 && report.Whole(field):
		report.Errorf(field, nil, "must list at least one code, such as UNAVAILABLE")
	case s.Has(0):
		report.Errorf(field, "OK", notFailure)
	case s >= 1<<(maxCode+1):
		report.Errorf(field, uint32(s), "must hold only codes that gRPC defines (1 to %d)", maxCode)
	}
}

// notFailure is said of OK: gRPC's own clients take it, and then never retry it.
const notFailure = "is not a failure; list codes such as UNAVAILABLE"

// checkPositive takes 0 for "not set", unless a file sets it to 0.
func checkPositive(report *document.Report, field string, d time.Duration) {
	if d < 0 || d == 0 && report.Written(field) {
		report.Errorf(field, d, "must be more than 0s")
	}
}

// checkNumber wants so many decimals at most: nothing may be rounded in silence.
func checkNumber(report *document.Report, field string, v, low, high float64, decimals int) {
	scale := math.Pow10(decimals)
	scaled := math.Round(v*scale) / scale
	switch {
	case !(v >= low && v <= high): // NaN too
		report.Errorf(field, v, "must be %v to %s", low, strconv.FormatFloat(high, 'f', -1, 64))
	case scaled != v:
		report.Errorf(field, v, "must have at most %d decimals, such as %v", decimals, scaled)
	}
}
