// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff computes how long to wait before a retry: exponential backoff, and other growths, with five kinds of jitter.
//
// stagger's own retries use it. So can loops of your own: reconnects, health checks, cache refreshes. The package only computes. Your loop
// waits, draws the random number, and counts. So the loop can stop with its context, and a test has exact delays.
//
// docs/backoff.md says which backoff to choose. The jitters FULL, EQUAL and DECORRELATED come from AWS
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), PROPORTIONAL from gRPC
// (https://github.com/grpc/proposal/blob/master/A6-client-retries.md).
package backoff

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config says how long to wait before retries. It is a plain value without state: goroutines may share it, and configs can be compared.
type Config struct {
	// Initial is the first delay before jitter. More than 0. Longer than Max, it counts as Max.
	Initial time.Duration
	// Max is the longest delay before jitter. More than 0. Only [JitterProportional] exceeds it, by up to 20 %.
	Max time.Duration
	// Multiplier is how much the delay grows from one retry to the next: see [Growth]. More than 0 and finite; a number below 1 makes
	// exponential delays shorter. [GrowthFixed] and [JitterDecorrelated] don't use it.
	Multiplier float64
	// Growth is how the delay grows. "" is [GrowthExponential]. [JitterDecorrelated] doesn't use it.
	Growth Growth
	// Jitter is how the delay is randomized. "" is [JitterFull].
	Jitter Jitter
}

// Growth is how the delay grows from one retry to the next, with the name that it has in a policy file. In the formulas, i is the number of
// earlier retries. Max bounds all of them.
type Growth string

// The growths.
const (
	GrowthExponential Growth = "EXPONENTIAL" // Initial · Multiplier^i
	GrowthLinear      Growth = "LINEAR"      // Initial · (1 + Multiplier·i)
	GrowthFixed       Growth = "FIXED"       // Initial
)

// Jitter is how a delay is randomized, with the name that it has in a policy file. In the formulas, b is the delay after growth and Max,
// and r is random in [0, 1).
type Jitter string

// The jitters.
const (
	JitterNone  Jitter = "NONE"  // b: clients that fail together come back together. Only for tests, or a single client
	JitterFull  Jitter = "FULL"  // r·b: spreads clients best for its mean delay, which is half of b
	JitterEqual Jitter = "EQUAL" // b/2 + r·b/2: waits at least half of b
	// JitterDecorrelated is Initial + r·(min(Max, 3·previous) − Initial), where previous is the last delay, or Initial. It grows by the
	// delays that it has drawn. AWS applies Max to the result, so that many clients wait for exactly Max; here the range ends at Max.
	JitterDecorrelated Jitter = "DECORRELATED"
	JitterProportional Jitter = "PROPORTIONAL" // b·(0.8 + 0.4·r): gRPC's own
)

// FieldError says what is wrong with a field of a [Config].
type FieldError struct {
	Field   string // its name in Config
	Value   any
	Message string // what it must be
}

// Error returns a text such as "backoff: Initial 0s: must be more than 0s".
func (e *FieldError) Error() string {
	return fmt.Sprintf("backoff: %s %v: %s", e.Field, e.Value, e.Message)
}

// Errors returns an error for each invalid field, in the order of the fields.
func (c Config) Errors() (errs []*FieldError) {
	report := func(field string, value any, message string) {
		errs = append(errs, &FieldError{Field: field, Value: value, Message: message})
	}
	if c.Initial <= 0 {
		report("Initial", c.Initial, "must be more than 0s")
	}
	if c.Max <= 0 {
		report("Max", c.Max, "must be more than 0s")
	}
	multiplies := c.Growth != GrowthFixed && c.Jitter != JitterDecorrelated
	if multiplies && (!(c.Multiplier > 0) || math.IsInf(c.Multiplier, 0)) { // also true for NaN
		report("Multiplier", c.Multiplier, "must be a number more than 0")
	}
	switch c.Growth {
	case "", GrowthExponential, GrowthLinear, GrowthFixed:
	default:
		report("Growth", c.Growth, "must be EXPONENTIAL, LINEAR or FIXED")
	}
	switch c.Jitter {
	case "", JitterNone, JitterFull, JitterEqual, JitterDecorrelated, JitterProportional:
	default:
		report("Jitter", c.Jitter, "must be NONE, FULL, EQUAL, DECORRELATED or PROPORTIONAL")
	}
	return errs
}

// Check returns nil if all fields are valid, and else the errors of [Config.Errors], joined by [errors.Join].
func (c Config) Check() error {
	wrong := c.Errors()
	errs := make([]error, len(wrong))
	for i, err := range wrong {
		errs[i] = err
	}
	return errors.Join(errs...)
}

// Delay returns how long to wait before a retry.
//
// retry is the number of earlier retries: 0 for the first, and 0 again after a success. previous is the last delay, or 0 before the first
// retry; only [JitterDecorrelated] uses it. r is a random number in [0, 1), such as Float64 of math/rand/v2 returns.
//
// The delay is at least 0 and at most Max, and with [JitterProportional] at most 1.2·Max. No input causes an overflow or a panic, also if
// [Config.Check] refuses the config. Then an unknown Growth or Jitter counts as the default, and the delay is 0 where the formula has no
// result.
func (c Config) Delay(retry int, previous time.Duration, r float64) time.Duration {
	r = min(max(r, 0), 1)
	if c.Jitter == JitterDecorrelated {
		low := float64(min(c.Initial, c.Max))
		high := min(float64(c.Max), 3*max(float64(previous), low))
		return toDuration(low + r*(high-low))
	}
	b := c.grown(retry)
	switch c.Jitter {
	case JitterNone:
		return toDuration(b)
	case JitterEqual:
		return toDuration(b/2 + r*b/2)
	case JitterProportional:
		return toDuration(b * (0.8 + 0.4*r))
	default:
		return toDuration(r * b)
	}
}

// grown returns the delay before jitter, in nanoseconds. Max applies to a float64, in which Multiplier^i may be infinite but never wraps
// around.
func (c Config) grown(retry int) float64 {
	i, grown := float64(max(retry, 0)), float64(c.Initial)
	switch c.Growth {
	case GrowthLinear:
		grown *= 1 + c.Multiplier*i
	case GrowthFixed:
	default:
		grown *= math.Pow(c.Multiplier, i)
	}
	return min(float64(c.Max), grown)
}

// toDuration saturates: the float64 nearest to the longest Duration already exceeds it.
func toDuration(ns float64) time.Duration {
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns > 0:
		return time.Duration(ns)
	default: // also NaN
		return 0
	}
}
