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

// logSize is the number of decisions kept per Retrier.
const logSize = 256

// loggedDecision is a recorded decision: another attempt, or the reason why there is none. The end of a
// call without a decision, such as cancelled, is one too; its attempt is the last.
type loggedDecision struct {
	interceptor.Event // without its Err

	Time  time.Time
	Slow  bool   // its per-attempt timeout or hedging delay had passed
	Error string // of the attempt, the first 256 bytes; "" if it still runs
}

// decisionLog is a ring of a Retrier's last decisions.
type decisionLog struct {
	mu   sync.Mutex // guards all below
	ring []loggedDecision
	next int // once the ring is full, the index of the oldest, which the next one overwrites

	counts decisionCounts
}

// shadow reports whether mode ENFORCE would have sent another attempt.
func shadow(e interceptor.Event) bool {
	return !e.Retry && (e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge)
}

// observer returns the observer that fills the log. It adds no cost to calls whose first attempt succeeds.
func (l *decisionLog) observer() interceptor.Observer {
	return interceptor.Observer{Decision: func(_ context.Context, e interceptor.Event) { l.add(e) }}
}

// add records a decision.
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

// decisionCountTime is how long a decision counts.
const decisionCountTime = 5 * time.Minute

const (
	countSlot    = 10 * time.Second // decisions expire in slots of this length
	countSlots   = int(decisionCountTime / countSlot)
	countMethods = 100 // in a slot: users may choose the names of methods
)

// decisionCounts are the counts of the last minutes, by slot. decisionLog.mu guards them.
type decisionCounts struct{ slots [countSlots]countedSlot }

// countedSlot has the counts of a slot; the Count of its keys is 0.
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

// countList returns the counts of the last minutes for a method, or for all with "", ordered by method and reason.
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
