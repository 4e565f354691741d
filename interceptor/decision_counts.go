// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// DecisionCount is how often the calls of a method had the same decision in the last [DecisionCountTime].
type DecisionCount struct {
	Method string // "other" for those beyond the first hundred
	Reason policy.Reason
	Shadow bool // it was in mode OBSERVE: the reason is that for which another attempt would have followed
	Count  int
}

// DecisionCountTime is how long a decision counts.
const DecisionCountTime = 5 * time.Minute

// DecisionCounts counts the decisions of the last minutes, in the order of method and reason; none unless somebody
// asked for decisions before ([WithDecisionLog], [Retrier.LogDecisions]). It is safe for concurrent use.
func (r *Retrier) DecisionCounts() []DecisionCount {
	l := &r.decisions
	l.mu.Lock()
	sums := l.counts.sum(time.Now())
	l.mu.Unlock()
	list := make([]DecisionCount, 0, len(sums))
	for of, n := range sums {
		of.Count = n
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b DecisionCount) int {
		return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Reason, b.Reason), compareBools(a.Shadow, b.Shadow))
	})
	return list
}

const (
	countSlot    = 10 * time.Second // decisions are forgotten in portions of so long
	countSlots   = int(DecisionCountTime / countSlot)
	countMethods = 100 // in a slot: names of methods may come from users
)

// decisionCounts are those of the last minutes, by their slots. decisionLog.mu guards them.
type decisionCounts struct{ slots [countSlots]countedSlot }

// countedSlot is what has happened in a slot; its counts have no Count themselves.
type countedSlot struct {
	start   time.Time
	counts  map[DecisionCount]int
	methods map[string]bool
}

func (c *decisionCounts) add(e Event, now time.Time) {
	start := now.Truncate(countSlot)
	s := &c.slots[int(start.Unix()/int64(countSlot/time.Second))%countSlots]
	if !s.start.Equal(start) {
		*s = countedSlot{start, map[DecisionCount]int{}, map[string]bool{}}
	}
	method := e.Method
	if !s.methods[method] && len(s.methods) >= countMethods {
		method = "other"
	}
	s.methods[method] = true
	s.counts[DecisionCount{Method: method, Reason: e.Reason, Shadow: e.Shadow}]++
}

func (c *decisionCounts) sum(now time.Time) map[DecisionCount]int {
	sums := map[DecisionCount]int{}
	for _, s := range c.slots {
		if now.Sub(s.start) >= DecisionCountTime {
			continue
		}
		for of, n := range s.counts {
			sums[of] += n
		}
	}
	return sums
}
