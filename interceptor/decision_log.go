// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DecisionLogSize is how many decisions a Retrier remembers.
const DecisionLogSize = 256

// LoggedDecision is a decision that a Retrier remembers: another attempt, or the reason why there is none. The end of a
// call that nobody decided on, such as cancelled, is one too; its attempt is the last.
type LoggedDecision struct {
	Event

	Time  time.Time
	Error string // of the attempt, the first 256 bytes; "" if it still runs
}

// WithDecisionLog lets the Retrier remember its last decisions from the start ([Retrier.Decisions]).
func WithDecisionLog() Option {
	return func(r *Retrier) error {
		r.LogDecisions()
		return nil
	}
}

// LogDecisions lets the Retrier remember its last decisions from now on, [DecisionLogSize] of them. Calls that succeed
// at once pay nothing for it. It is safe for concurrent use.
func (r *Retrier) LogDecisions() { r.decisions.on.Store(true) }

// Decisions are the last decisions, the oldest first; none unless somebody asked for them before ([WithDecisionLog],
// [Retrier.LogDecisions]). It is safe for concurrent use.
func (r *Retrier) Decisions() []LoggedDecision { return r.decisions.all() }

// decisionLog is a ring of the last decisions.
type decisionLog struct {
	on atomic.Bool

	mu   sync.Mutex // guards all below
	ring []LoggedDecision
	next int // where the next one goes once the ring is full: the oldest stands there

	counts decisionCounts
}

// add remembers a decision about an attempt, if the log is on.
func (l *decisionLog) add(e Event) {
	if !l.on.Load() {
		return
	}
	d := LoggedDecision{Event: e, Time: time.Now(), Error: shortText(e.Err)}
	d.Err = nil // which may hold a message alive
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.add(e, d.Time)
	if len(l.ring) < DecisionLogSize {
		l.ring = append(l.ring, d)
		return
	}
	l.ring[l.next] = d
	l.next = (l.next + 1) % DecisionLogSize
}

func (l *decisionLog) all() []LoggedDecision {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Concat(l.ring[l.next:], l.ring[:l.next])
	for i := range all {
		all[i].Codes = slices.Clone(all[i].Codes)
	}
	return all
}

// shortText is the first part of an error's text, of which nothing longer is kept alive.
func shortText(err error) string {
	const most = 256
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:most]), "") // a rune may be cut
}
