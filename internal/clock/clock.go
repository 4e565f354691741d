// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package clock is the clock of a process: monotonic, and the same everywhere, so that Retriers may share a budget. Its
// times are Durations, since a [time.Time] costs a third more to read, in every call.
package clock

import "time"

// origin is where the clock counts from.
var origin = time.Now()

// Now is the time since the clock began.
func Now() time.Duration { return time.Since(origin) }

// At is what [Now] was at a time that [time.Now] has returned.
func At(t time.Time) time.Duration { return t.Sub(origin) }

// Time is what [time.Now] was when [Now] was d.
func Time(d time.Duration) time.Time { return origin.Add(d) }
