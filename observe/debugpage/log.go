// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// logSize is how many decisions are remembered of a Retrier.
const logSize = 256

// loggedDecision is a decision that is remembered: another attempt, or the reason why there is none. The end of a
// call that nobody decided on, such as cancelled, is one too; its attempt is the last.
type loggedDecision struct {
	interceptor.Event // without its Err

	Time  time.Time
	Slow  bool   // its per-attempt timeout or hedging delay was over
	Error string // of the attempt, the first 256 bytes; "" if it still runs
}

// decisionLog is a ring of a Retrier's last decisions.
type decisionLog struct {
	mu   sync.Mutex // guards all below
	ring []loggedDecision
	next int // where the next one goes once the ring is full: the oldest stands there

	counts decisionCounts
}

// shadow reports whether another attempt would have followed, but for mode OBSERVE.
func shadow(e interceptor.Event) bool {
	return !e.Retry && (e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge)
}

// observer fills the log. A call that succeeds at once costs it nothing.
func (l *decisionLog) observer() interceptor.Observer {
	return interceptor.Observer{Decision: func(_ context.Context, e interceptor.Event) { l.add(e) }}
}

// add remembers a decision.
func (l *decisionLog) add(e interceptor.Event) {
	d := loggedDecision{Event: e, Time: time.Now(), Slow: e.Code == codes.DeadlineExceeded && e.Err == nil, Error: shortText(e.Err)}
	d.Err = nil // it may keep messages alive
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.add(e, d.Time)
	if len(l.ring) < logSize {
		l.ring = append(l.ring, d)
		return
	}
	l.ring[l.next] = d
	l.next = (l.next + 1) % logSize
}

// all are the last decisions, the oldest first.
func (l *decisionLog) all() []loggedDecision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.ring[l.next:], l.ring[:l.next])
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

// decisionCountTime is how long a decision counts.
const decisionCountTime = 5 * time.Minute

const (
	countSlot    = 10 * time.Second // decisions are forgotten in portions of so long
	countSlots   = int(decisionCountTime / countSlot)
	countMethods = 100 // in a slot: names of methods may come from users
)

// decisionCounts are those of the last minutes, by their slots. decisionLog.mu guards them.
type decisionCounts struct{ slots [countSlots]countedSlot }

// countedSlot is what has happened in a slot; its counts have no Count themselves.
type countedSlot struct {
	start   time.Time
	counts  map[countState]int
	methods map[string]bool
}

func (c *decisionCounts) add(e interceptor.Event, now time.Time) {
	start := now.Truncate(countSlot)
	s := &c.slots[int(start.Unix()/int64(countSlot/time.Second))%countSlots]
	if !s.start.Equal(start) {
		*s = countedSlot{start, map[countState]int{}, map[string]bool{}}
	}
	method := e.Method
	if !s.methods[method] && len(s.methods) >= countMethods {
		method = "other"
	}
	s.methods[method] = true
	s.counts[countState{Method: method, Reason: e.Reason, Shadow: shadow(e)}]++
}

// countList counts the decisions of the last minutes about a method, or all for "", in the order of method and reason.
func (l *decisionLog) countList(method string) []countState {
	l.mu.Lock()
	sums := l.counts.sum(time.Now())
	l.mu.Unlock()
	list := []countState{}
	for of, n := range sums {
		if method == "" || method == of.Method {
			of.Count = n
			list = append(list, of)
		}
	}
	slices.SortFunc(list, compareCounts)
	return list
}

func (c *decisionCounts) sum(now time.Time) map[countState]int {
	sums := map[countState]int{}
	for _, s := range c.slots {
		if now.Sub(s.start) >= decisionCountTime {
			continue
		}
		for of, n := range s.counts {
			sums[of] += n
		}
	}
	return sums
}
