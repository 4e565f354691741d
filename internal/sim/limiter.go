// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

// limiter bounds the attempts of each process that run at a time, like a server's limit on streams of a connection. Others wait
// in the client, in their order. A nil limiter has no bound.
type limiter struct {
	most    int
	running []int        // of each process
	waiting [][]*attempt // of each process
}

func newLimiter(most, processes int) *limiter {
	if most == 0 {
		return nil
	}
	return &limiter{most, make([]int, processes), make([][]*attempt, processes)}
}

// enter reports whether an attempt may depart now. Otherwise it waits.
func (l *limiter) enter(a *attempt) bool {
	if l == nil {
		return true
	}
	if l.running[a.client] >= l.most {
		l.waiting[a.client] = append(l.waiting[a.client], a)
		return false
	}
	l.running[a.client]++
	a.sent = true
	return true
}

// leave ends an attempt. The next one that still has a call departs.
func (l *limiter) leave(a *attempt) {
	if l == nil || !a.sent {
		return
	}
	a.sent = false
	l.running[a.client]--
	for len(l.waiting[a.client]) > 0 {
		next := l.waiting[a.client][0]
		l.waiting[a.client] = l.waiting[a.client][1:]
		if next.call != nil && l.enter(next) {
			next.depart()
			return
		}
	}
}
