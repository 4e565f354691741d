// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package clock is a monotonic clock that the whole process shares, so that Retriers can share a budget. Its
// times are Durations, because reading a [time.Time] costs a third more, in every call.
package clock

import "time"

// origin is the zero of the clock.
var origin = time.Now()

// Now returns the time since the origin.
func Now() time.Duration { return time.Since(origin) }

// At converts a result of [time.Now] to that of [Now] at the same moment.
func At(t time.Time) time.Duration { return t.Sub(origin) }

// Time converts a result of [Now] to that of [time.Now] at the same moment.
func Time(d time.Duration) time.Time { return origin.Add(d) }
