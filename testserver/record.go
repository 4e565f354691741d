// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"strings"
	"sync"
	"time"
)

// keepAll is a record without bound.
const keepAll = -1

// record holds the attempts, in the order of their arrival.
type record struct {
	mu       sync.Mutex
	keep     int // keepAll, or how many at least
	attempts []*Attempt
	counts   map[string]int
	total    int
}

// begin numbers a and, when attempts are kept, keeps it. A deadline of zero is none.
func (r *record) begin(a *Attempt, deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[a.Method]++
	a.Number = r.counts[a.Method]
	r.total++
	a.Serial = r.total
	a.Time = time.Now() // under the lock, so that times rise along the record
	if !deadline.IsZero() {
		a.Timeout = deadline.Sub(a.Time)
	}
	if r.keep == 0 {
		return
	}
	if r.keep > 0 && len(r.attempts) >= 2*r.keep { // moves each attempt once, not at every arrival
		r.attempts = append(make([]*Attempt, 0, 2*r.keep), r.last()...)
	}
	r.attempts = append(r.attempts, a)
}

// update changes an attempt that may be in the record.
func (r *record) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *record) last() []*Attempt {
	if r.keep == keepAll {
		return r.attempts
	}
	return r.attempts[max(0, len(r.attempts)-r.keep):]
}

// Attempts returns what the server has seen since it was started, or since [Server.Reset], in order
// of arrival: all of it, or what [Keep] leaves. Attempts that still run are included.
func (s *Server) Attempts() []Attempt {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	kept := s.record.last()
	list := make([]Attempt, len(kept))
	for i, a := range kept {
		list[i] = a.clone()
	}
	return list
}

// Count says how many attempts have arrived since the start, or since [Server.Reset]: of one method
// ("/package.Service/Method"), of all methods of a service ("/package.Service/*"), or of all ("*").
func (s *Server) Count(method string) int {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	prefix, many := strings.CutSuffix(method, "*")
	if !many {
		return s.record.counts[method]
	}
	sum := 0
	for name, n := range s.record.counts {
		if strings.HasPrefix(name, prefix) {
			sum += n
		}
	}
	return sum
}

// Reset forgets all attempts and counts and begins every script anew. Scripts stay.
func (s *Server) Reset() {
	s.scripts.rewind()
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	s.record.attempts, s.record.counts, s.record.total = nil, nil, 0
}

// Observe calls f with every attempt when it begins, and once more when it has ended: then its End is
// set. A client that has its answer has been seen by f. f is called in the attempt's own goroutine,
// from many at once, and holds the attempt up until it returns. It may be given more than once.
func Observe(f func(Attempt)) Option {
	return func(c *settings) error {
		if f == nil {
			return errors.New("testserver: Observe(nil): want a function")
		}
		c.observe = append(c.observe, f)
		return nil
	}
}

// notify calls the observers with an attempt as it is now.
func (s *Server) notify(a *Attempt) {
	if len(s.observe) == 0 {
		return
	}
	var now Attempt
	s.record.update(func() { now = a.clone() })
	for _, f := range s.observe {
		f(now)
	}
}
