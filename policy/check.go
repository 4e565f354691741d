// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"
)

// checkSpec reports everything that is wrong with s. Fields are named as in a policy file, under
// the given path.
func checkSpec(ps *problems, path string, s Spec) {
	checkPositive(ps, path+"timeout", s.Timeout)
	checkBytes(ps, path+"maxRequestMessageBytes", s.MaxRequestBytes)
	checkBytes(ps, path+"maxResponseMessageBytes", s.MaxResponseBytes)
	if s.Idempotency > IdempotencyNone {
		ps.add(path+"idempotency", uint8(s.Idempotency), "must be ASSUME, DECLARED or NONE")
	}
	checkIdempotencyKey(ps, path, s)
	if s.Hedge != nil {
		checkHedge(ps, path+"hedgingPolicy.", *s.Hedge)
		if s.Retry != nil {
			ps.add(path+"hedgingPolicy", nil, "stands beside retryPolicy: keep one of the two")
		}
	}
	if s.Retry != nil {
		checkRetry(ps, path+"retryPolicy.", *s.Retry)
	}
}

func checkBytes(ps *problems, field string, n *int) {
	if n != nil && *n < 0 {
		ps.add(field, *n, "must not be negative")
	}
}

func checkRetry(ps *problems, path string, r RetrySpec) {
	checkAttempts(ps, path+"maxAttempts", r.MaxAttempts)
	checkBackoff(ps, path, r.Backoff)
	checkCodes(ps, path+"retryableStatusCodes", r.Codes)
	checkPositive(ps, path+"perAttemptTimeout", r.PerAttemptTimeout)
	checkPositive(ps, path+"maxPushback", r.MaxPushback)
	checkPositive(ps, path+"minAttemptTime", r.MinAttemptTime)
	if r.CommitOn > CommitOnHeaders {
		ps.add(path+"commitOn", uint8(r.CommitOn), "must be SEEN or HEADERS")
	}
	if r.OnAttemptTimeout > OnTimeoutHedge {
		ps.add(path+"onAttemptTimeout", uint8(r.OnAttemptTimeout), "must be HEDGE or RETRY")
	}
	if r.Chain > ChainSuppress {
		ps.add(path+"chain", uint8(r.Chain), "must be ALLOW, ONCE or SUPPRESS")
	}
	for i, o := range r.Overrides {
		checkOverride(ps, fmt.Sprintf("%scodeOverrides[%d].", path, i), o)
	}
	if r.PerAttemptTimeout > 0 && r.CommitOn == CommitOnHeaders {
		ps.add(path+"perAttemptTimeout", r.PerAttemptTimeout,
			"must not stand beside commitOn HEADERS: an attempt whose headers have arrived could be given up; leave one of them out")
	}
	var seen CodeSet
	for i, c := range r.PerCode {
		checkCode(ps, path, fmt.Sprintf("%sperCode[%d].", path, i), c, r, seen)
		seen |= c.Codes
	}
}

// checkAttempts holds for retries and for hedges.
func checkAttempts(ps *problems, field string, n int) {
	if n < 2 {
		ps.add(field, n, "must be at least 2, since it counts the first attempt; for one attempt leave the policy out")
	}
}

// checkCode checks the settings of some codes; seen are the codes that earlier settings are for.
func checkCode(ps *problems, policy, path string, c CodeSpec, r RetrySpec, seen CodeSet) {
	checkCodes(ps, path+"codes", c.Codes)
	if extra := c.Codes &^ r.Codes; extra != 0 && r.Codes != 0 && ps.whole(policy+"retryableStatusCodes") {
		ps.add(path+"codes", extra, "must stand in retryableStatusCodes too, else it is never retried")
	}
	if twice := c.Codes & seen; twice != 0 {
		ps.add(path+"codes", twice, "stands in another perCode entry too; only one may have it")
	}
	if n := c.MaxAttempts; n < 0 || n == 0 && ps.written(path+"maxAttempts") || n > r.MaxAttempts && r.MaxAttempts >= 2 {
		ps.add(path+"maxAttempts", n, "must be 1 to the policy's maxAttempts, %d", max(r.MaxAttempts, 2))
	}
	if c.Backoff != nil {
		checkBackoff(ps, path, *c.Backoff)
	}
	if c.CostFactor != 0 || ps.written(path+"costFactor") {
		checkNumber(ps, path+"costFactor", c.CostFactor, 0.01, 100, 2)
	}
}

func checkBackoff(ps *problems, path string, b Backoff) {
	if b.Initial <= 0 {
		ps.add(path+"initialBackoff", b.Initial, "must be more than 0s")
	}
	if b.Max <= 0 {
		ps.add(path+"maxBackoff", b.Max, "must be more than 0s")
	}
	switch {
	case !(b.Multiplier > 0) || math.IsInf(b.Multiplier, 0): // NaN too
		ps.add(path+"backoffMultiplier", b.Multiplier, "must be a number more than 0")
	case b.Growth == GrowthFixed && b.Multiplier != 1:
		ps.add(path+"backoffMultiplier", b.Multiplier, "must be 1 with growth FIXED, so that gRPC reads the same")
	}
	if b.Growth > GrowthFixed {
		ps.add(path+"growth", uint8(b.Growth), "must be EXPONENTIAL, LINEAR or FIXED")
	}
	if b.Jitter > JitterProportional {
		ps.add(path+"jitter", uint8(b.Jitter), "must be NONE, FULL, EQUAL, DECORRELATED or PROPORTIONAL")
	}
}

func checkCodes(ps *problems, field string, s CodeSet) {
	switch {
	case s == 0 && ps.whole(field):
		ps.add(field, nil, "must list at least one code, such as UNAVAILABLE")
	case s.Has(0):
		ps.add(field, "OK", notFailure)
	case s >= 1<<(maxCode+1):
		ps.add(field, uint32(s), "must hold only codes that gRPC defines (1 to %d)", maxCode)
	}
}

// notFailure is said of OK: gRPC's own clients take it, and then never retry it.
const notFailure = "is not a failure; list codes such as UNAVAILABLE"

// checkPositive takes 0 for "not set", unless a file sets it to 0.
func checkPositive(ps *problems, field string, d time.Duration) {
	if d < 0 || d == 0 && ps.written(field) {
		ps.add(field, d, "must be more than 0s")
	}
}
