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

// Where a server's word was found; in this order they are asked, and the first that is there holds.
const (
	PushbackTrailer = "grpc-retry-pushback-ms"
	RetryInfo       = "google.rpc.RetryInfo"
	RetryAfter      = "retry-after"
)

// Pushback is a server's word on retrying: not at all, or after a delay.
type Pushback struct {
	Source string        // "" if the server said nothing
	Stop   bool          // do not retry
	Delay  time.Duration // not before this; meaningless with Stop
}

// pushbackJitter is the most that chance adds to a server's delay, as a part of it: a thousand
// clients told to come back in 5 s must not come back together, nor any of them earlier.
const pushbackJitter = 0.1

// After is the delay to wait, with jitter: at least what the server asks for. r is a chance in [0, 1).
func (p Pushback) After(r float64) time.Duration {
	spread := time.Duration(r * pushbackJitter * float64(p.Delay))
	return p.Delay + min(spread, math.MaxInt64-p.Delay)
}

// ReadPushback finds the server's word in what an attempt brought. Only grpc-retry-pushback-ms can
// stop a call: a RetryInfo or retry-after that makes no sense counts as not said.
func ReadPushback(st *status.Status, header, trailer metadata.MD, now time.Time) Pushback {
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
	for _, md := range []metadata.MD{trailer, header} {
		if values := md[RetryAfter]; len(values) == 1 {
			if delay, ok := ParseRetryAfter(values[0], now); ok {
				return Pushback{Source: RetryAfter, Delay: delay}
			}
		}
	}
	return Pushback{}
}

// ParsePushback reads a grpc-retry-pushback-ms value as gRFC A6 spells it: a signed 32-bit number
// of milliseconds without plus sign, spaces or needless zeros. What is negative or not such a number
// is not ok: do not retry.
func ParsePushback(text string) (delay time.Duration, ok bool) {
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms < 0 || strconv.FormatInt(ms, 10) != text {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// ParseRetryAfter reads a retry-after value: whole seconds, or an HTTP date (RFC 9110, 10.2.3). A
// date that has passed means at once, and a number too large for a Duration the longest one.
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

// longestSeconds is the most that a protobuf Duration may hold.
const longestSeconds = 315_576_000_000

// retryInfo returns the longest delay that the status's details ask for. Details that do not
// unmarshal, and delays that are absent, invalid or negative, say nothing; one that is too
// large for its type says the longest delay there is.
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
