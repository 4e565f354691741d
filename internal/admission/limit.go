// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

// until is a time until which something holds. The zero value is none.
type until time.Duration

func (u *until) holds(now time.Duration) bool { return *u != 0 && now < time.Duration(*u) }

// extend makes it hold until at, at least.
func (u *until) extend(at time.Duration) {
	if *u == 0 || at > time.Duration(*u) { // clocks may stand before 0
		*u = until(at)
	}
}

// limit bounds the part of the calls that are refused.
type limit struct {
	began          time.Duration
	calls, refused int
}

// The bound holds over so long, and over so many calls.
const (
	mostRefused = 0.75
	limitTime   = 2 * time.Second
	limitCalls  = 20
)

// allow counts a call, and reports whether it may be refused: if that is wanted, and within the limit or free of it.
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
