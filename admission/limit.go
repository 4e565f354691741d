// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

// until is the end of a condition. The zero value: the condition doesn't apply.
type until time.Duration

func (u *until) holds(now time.Duration) bool { return *u != 0 && now < time.Duration(*u) }

// extend makes the condition apply at least until at.
func (u *until) extend(at time.Duration) {
	if *u == 0 || at > time.Duration(*u) { // times may be negative
		*u = until(at)
	}
}

// limit bounds the share of refused calls.
type limit struct {
	began          time.Duration
	calls, refused int
}

// The bound applies over this time, and this number of calls.
const (
	mostRefused = 0.75
	limitTime   = 2 * time.Second
	limitCalls  = 20
)

// allow counts a call, and reports whether it may be refused: if wanted, and within the limit or exempt from it (free).
func (l *limit) allow(now time.Duration, wanted, free bool) bool {
	if l.calls >= limitCalls && now-l.began >= limitTime {
		*l = limit{began: now}
	}
	l.calls++
	if !wanted || !free && float64(l.refused+1) > mostRefused*float64(l.calls) {
		return false
	}
	l.refused++
	return true
}
