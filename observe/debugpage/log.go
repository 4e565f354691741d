// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// logSize is the number of decisions kept per Retrier.
const logSize = 256

// loggedDecision is a recorded decision: another attempt, or the reason why there is none. The end of a
// call without a decision, such as cancelled, is one too; its attempt is the last.
type loggedDecision struct {
	interceptor.Event // without its Err

	Time  time.Time
	Waits bool   // the attempt waits for a connection
	Slow  bool   // its per-attempt timeout or hedging delay had passed
	Error string // of the attempt, the first 256 bytes; "" if it still runs
}

// decisionLog is a ring of a Retrier's last decisions.
type decisionLog struct {
	mu   sync.Mutex // guards all below
	ring []loggedDecision
	next int // once the ring is full, the index of the oldest, which the next one overwrites
}

// announced reports whether mode ENFORCE would have sent another attempt, if the budget had paid for it.
func announced(e interceptor.Event) bool {
	return !e.WillRetry && (e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge)
}

// observer returns the observer that fills the log. It adds no cost to calls whose first attempt succeeds.
func (l *decisionLog) observer() interceptor.Observer {
	return interceptor.Observer{
		Decision: func(_ context.Context, e interceptor.Event) { l.add(e, false) },
		Wait:     func(_ context.Context, e interceptor.Event) { l.add(e, true) },
	}
}

// add records a decision, or a wait for a connection.
func (l *decisionLog) add(e interceptor.Event, waits bool) {
	d := loggedDecision{Event: e, Waits: waits, Time: time.Now(), Slow: e.Slow(), Error: shortText(e.Err)}
	d.Err = nil // it may keep messages alive
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) < logSize {
		l.ring = append(l.ring, d)
		return
	}
	l.ring[l.next] = d
	l.next = (l.next + 1) % logSize
}

// all returns the last decisions, the oldest first.
func (l *decisionLog) all() []loggedDecision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.ring[l.next:], l.ring[:l.next])
}

// shortText returns the first part of an error's text, as a copy, so that a long text isn't kept alive.
func shortText(err error) string {
	const most = 256
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:most]), "") // a rune may be incomplete
}
