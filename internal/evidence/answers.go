// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The numbers of [Evidence]; docs/overload.md says them in words.
const (
	Remembered = 10 // answers of a method
	MostSlow   = 2  // of them, while attempts follow slow ones
	Enough     = 5  // with fewer answers, no attempt is sent in parallel with a slow one
)

// CallPart is the part of a call's time to its deadline after which an answer is slow if the attempt has no timeout of its own.
const CallPart = 4

// Speed is what one answer shows.
type Speed uint8

// The speeds.
const (
	Fast     Speed = iota // it came within the limit
	Slow                  // it took longer than the attempt's own timeout, but at most a quarter of the call's time
	VerySlow              // it took longer than both
)

// Limits are the times that an answer may take.
type Limits struct {
	Fast time.Duration // the attempt's own timeout; without one, a quarter of the call's time
	Slow time.Duration // the longer of both
}

// LimitsOf returns the limits of an attempt with this timeout of its own, or 0, and with this time left to its call when it began.
func LimitsOf(timeout, left time.Duration) Limits {
	part := left / CallPart
	if timeout == 0 {
		return Limits{part, part}
	}
	return Limits{timeout, max(timeout, part)}
}

// SpeedOf returns the speed of an answer.
func (l Limits) SpeedOf(took time.Duration) Speed {
	switch {
	case took <= l.Fast:
		return Fast
	case took <= l.Slow:
		return Slow
	default:
		return VerySlow
	}
}

// Evidence is what the last answers of a method show. The zero value is that of a method without answers.
type Evidence struct {
	Known    int // how many answers there are, at most Remembered
	Slow     int // of them
	VerySlow int // of these
}

// Few reports whether there are too few answers to tell whether attempts beside slow ones help.
func (e Evidence) Few() bool { return e.Known < Enough }

// OftenSlow reports whether more than MostSlow of Remembered answers were slow; of fewer answers, more than the same part.
func (e Evidence) OftenSlow() bool { return e.Slow*Remembered > MostSlow*e.Known }

// AlwaysSlow reports whether there are as many answers as are remembered, and all were very slow.
func (e Evidence) AlwaysSlow() bool { return e.VerySlow == Remembered }

// Summary says for people what the last answers show, in the terms of one attempt.
type Summary struct {
	Evidence
	Limits
}

// Answers remembers the last answers to a method's attempts. The zero value has none. It is safe for concurrent use.
//
// It is one word: for each answer a bit of a slow one and a bit of a very slow one, the newest lowest, and their number. While all that it
// remembers were fast, another fast one changes nothing, so that calls to a healthy server only read it.
//
//	31      24 23   20 19       10 9         0
//	[ unused ][ known ][ very slow ][   slow   ]
type Answers struct{ word atomic.Uint32 }

const answersMask = 1<<Remembered - 1

// Record records an answer.
func (a *Answers) Record(s Speed) {
	for {
		old := a.word.Load()
		known := min(old>>(2*Remembered)+1, Remembered)
		slow := old << 1 & answersMask
		verySlow := old >> Remembered << 1 & answersMask
		if s >= Slow {
			slow |= 1
		}
		if s == VerySlow {
			verySlow |= 1
		}
		next := known<<(2*Remembered) | verySlow<<Remembered | slow
		if next == old || a.word.CompareAndSwap(old, next) {
			return
		}
	}
}

// Evidence returns what the answers show.
func (a *Answers) Evidence() Evidence {
	word := a.word.Load()
	return Evidence{
		Known:    int(word >> (2 * Remembered)),
		Slow:     bits.OnesCount32(word & answersMask),
		VerySlow: bits.OnesCount32(word >> Remembered & answersMask),
	}
}
