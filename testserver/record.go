// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"strings"
	"sync"
	"time"
)

// keepAll means an unlimited record.
const keepAll = -1

// record holds the attempts, in the order of their arrival.
type record struct {
	mu       sync.Mutex
	keep     int // keepAll, or the minimum number of attempts
	attempts []*Attempt
	counts   map[string]int
	total    int
}

// begin numbers a, and keeps it if attempts are kept. The zero deadline means none.
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
	a.Time = time.Now() // under the lock, so that times in the record increase
	if !deadline.IsZero() {
		a.Timeout = deadline.Sub(a.Time)
	}
	if r.keep == 0 {
		return
	}
	if r.keep > 0 && len(r.attempts) >= 2*r.keep { // moves each attempt only once
		r.attempts = append(make([]*Attempt, 0, 2*r.keep), r.last()...)
	}
	r.attempts = append(r.attempts, a)
}

// update runs change under the lock, for attempts that may be in the record.
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

// Attempts returns all attempts since the start, or since [Server.Reset], in order
// of arrival, or the last ones with [Keep]. It includes running attempts.
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

// Count returns the number of attempts since the start, or since [Server.Reset]: of one method
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

// Reset drops all attempts and counts, and restarts every script.
func (s *Server) Reset() {
	s.scripts.rewind()
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	s.record.attempts, s.record.counts, s.record.total = nil, nil, 0
}

// Observe calls f with every attempt when it begins, and again when it has ended, with End
// set. f runs before the client gets its answer. It is called in the attempt's own goroutine,
// concurrently, and delays the attempt until it returns. It may be given more than once.
func Observe(f func(Attempt)) Option {
	return func(c *settings) error {
		if f == nil {
			return errors.New("testserver: Observe(nil): want a function")
		}
		c.observe = append(c.observe, f)
		return nil
	}
}

// notify calls the observers with a copy of an attempt.
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
