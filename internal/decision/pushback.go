// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The sources of a pushback. The first of these that is present applies.
const (
	PushbackTrailer = "grpc-retry-pushback-ms"
	FromVerdict     = "verdict" // of a classifier
	RetryInfo       = "google.rpc.RetryInfo"
	RetryAfter      = "retry-after"
)

// Pushback is a server's instruction on retrying: not at all, or after a delay.
type Pushback struct {
	Source string        // "" if there is none
	Stop   bool          // do not retry
	Delay  time.Duration // not before this; meaningless with Stop
}

// pushbackJitter is the maximum jitter, as a part of the server's delay: a thousand clients with a delay of 5 s must not return
// at the same time, and none of them earlier.
const pushbackJitter = 0.1

// After returns the delay with jitter, at least the server's delay. r is a random number in [0, 1).
func (p Pushback) After(r float64) time.Duration {
	spread := time.Duration(r * pushbackJitter * float64(p.Delay))
	return p.Delay + min(spread, math.MaxInt64-p.Delay)
}

// ReadPushback returns the pushback of an attempt. Only the trailer counts, which has everything that a server or proxy sends instead of a
// response. Only grpc-retry-pushback-ms can stop a call: an invalid RetryInfo or retry-after is ignored.
func ReadPushback(st *status.Status, trailer metadata.MD, now time.Time) Pushback {
	if values := trailer[PushbackTrailer]; len(values) > 0 {
		if len(values) == 1 {
			if delay, ok := ParsePushback(values[0]); ok {
				return Pushback{Source: PushbackTrailer, Delay: delay}
			}
		}
		return Pushback{Source: PushbackTrailer, Stop: true}
	}
	if delay, ok := retryInfo(st); ok {
		return Pushback{Source: RetryInfo, Delay: delay}
	}
	if values := trailer[RetryAfter]; len(values) == 1 {
		if delay, ok := ParseRetryAfter(values[0], now); ok {
			return Pushback{Source: RetryAfter, Delay: delay}
		}
	}
	return Pushback{}
}

// ParsePushback parses a grpc-retry-pushback-ms value as defined in gRFC A6: a signed 32-bit number of milliseconds without
// plus sign, spaces or needless zeros. For a negative number or any other text, ok is false: do not retry.
func ParsePushback(text string) (delay time.Duration, ok bool) {
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms < 0 || strconv.FormatInt(ms, 10) != text {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// ParseRetryAfter parses a retry-after value: whole seconds, or an HTTP date (RFC 9110, 10.2.3). For a past date the delay is
// 0, and for a number too large for a Duration the longest one.
func ParseRetryAfter(text string, now time.Time) (delay time.Duration, ok bool) {
	seconds, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil && seconds <= math.MaxInt64/uint64(time.Second):
		return time.Duration(seconds) * time.Second, true
	case err == nil, errors.Is(err, strconv.ErrRange):
		return math.MaxInt64, true
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0), true
	}
	return 0, false
}

// longestSeconds is the maximum of a protobuf Duration.
const longestSeconds = 315_576_000_000

// retryInfo returns the longest delay in the status's details. It ignores details that do not unmarshal, and delays that are
// absent, invalid or negative. A delay that is too large for its type counts as the longest one.
func retryInfo(st *status.Status) (delay time.Duration, ok bool) {
	for _, detail := range st.Details() {
		info, isInfo := detail.(*errdetails.RetryInfo)
		if !isInfo {
			continue
		}
		d := info.GetRetryDelay()
		switch {
		case d.GetSeconds() > longestSeconds:
			delay, ok = math.MaxInt64, true
		case d.CheckValid() == nil && d.AsDuration() >= 0:
			delay, ok = max(delay, d.AsDuration()), true
		}
	}
	return delay, ok
}
