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
	"github.com/stagger-go/stagger/internal/running"
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
	call  uint64 // its number, see running.Number
}

// decisionLog is a ring of a Retrier's last decisions.
type decisionLog struct {
	mu   sync.Mutex // guards all below
	ring []loggedDecision
	next int // once the ring is full, the index of the oldest, which the next one overwrites

	running  running.Calls
	backends backendTable
}

// announced reports whether mode ENFORCE would have sent another attempt, if the budget had paid for it.
func announced(e interceptor.Event) bool {
	return !e.WillRetry && (e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge)
}

// observer returns the observer that fills the log, and counts running calls and the attempts at each backend.
func (l *decisionLog) observer() interceptor.Observer {
	return interceptor.Observer{
		CallStart: func(ctx context.Context, e interceptor.Event) context.Context {
			return l.running.Begin(ctx, e.Method, e.Target, time.Now())
		},
		Attempt:  l.attempt,
		Decision: func(ctx context.Context, e interceptor.Event) { l.add(ctx, e, false) },
		Wait:     func(ctx context.Context, e interceptor.Event) { l.add(ctx, e, true) },
		CallEnd:  func(ctx context.Context, _ interceptor.CallEnd) { l.running.End(ctx) },
	}
}

// attempt counts an attempt that has ended. If there was a decision on it while it ran, that gets its backend.
func (l *decisionLog) attempt(ctx context.Context, e interceptor.Event) {
	l.backends.note(e, time.Now())
	call := l.running.Number(ctx)
	if !e.SlowAttempt || call == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.ring {
		d := &l.ring[i]
		if d.call == call && d.Slow && d.Attempt == e.Attempt {
			d.Peer = e.Peer
		}
	}
}

// add records a decision, or a wait for a connection.
func (l *decisionLog) add(ctx context.Context, e interceptor.Event, waits bool) {
	d := loggedDecision{Event: e, Waits: waits, Time: time.Now(), Slow: e.Slow(), Error: shortText(e.Err), call: l.running.Number(ctx)}
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
