// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"strings"
	"sync"
	"time"
)

// keepAll means an unlimited record.
const keepAll = -1

// maxRecord bounds the metadata and requests of all recorded attempts together, in bytes.
const maxRecord = 64 << 20

// record holds the attempts, in the order of their arrival.
type record struct {
	mu       sync.Mutex
	keep     int // keepAll, or the minimum number of attempts
	attempts []*Attempt
	counts   map[string]int
	size     int // of the attempts' metadata and requests
	emptied  int // the number of the first attempts that have none left
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
	a.Time = time.Now() // under the lock, so that times in the record increase
	if !deadline.IsZero() {
		a.Timeout = deadline.Sub(a.Time)
	}
	if r.keep == 0 {
		return
	}
	if r.keep > 0 && len(r.attempts) >= 2*r.keep { // moves each attempt only once
		gone := len(r.attempts) - r.keep
		for _, old := range r.attempts[min(r.emptied, gone):gone] {
			old.recorded = false
			r.size -= old.size
		}
		r.emptied = max(0, r.emptied-gone)
		r.attempts = append(make([]*Attempt, 0, 2*r.keep), r.last()...)
	}
	a.recorded = true
	r.attempts = append(r.attempts, a)
	for key, values := range a.Metadata {
		for _, v := range values {
			r.grow(a, entrySize+len(key)+len(v))
		}
	}
}

// entrySize is the size of a message or a value without its bytes.
const entrySize = 40

// grow counts n more bytes of an attempt. If there are too many, the oldest attempts lose their metadata and requests.
// r.mu must be held.
func (r *record) grow(a *Attempt, n int) {
	a.size += n
	if !a.recorded {
		return
	}
	r.size += n
	for ; r.size > maxRecord && r.emptied < len(r.attempts); r.emptied++ {
		old := r.attempts[r.emptied]
		r.size -= old.size
		old.Metadata, old.Requests, old.full, old.recorded = nil, nil, true, false
	}
}

// received records a message of an attempt. It keeps the first of any size, and none after one that exceeds maxSize.
func (r *record) received(a *Attempt, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.Received++
	if a.Received > 1 && (a.full || a.size+len(b) > maxSize) {
		a.full = true
		return
	}
	a.Requests = append(a.Requests, b)
	r.grow(a, entrySize+len(b))
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
// of arrival, or the last ones with [Keep]. It includes running attempts. When their metadata and requests exceed 64 MiB, the oldest
// attempts have none.
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

// Reset drops all attempts and counts, and restarts every script, in one step: a call that begins at that moment is recorded only if it
// gets a step of the restarted script.
func (s *Server) Reset() {
	s.begins.Lock()
	defer s.begins.Unlock()
	s.scripts.rewind()
	s.record.reset()
}

// reset drops all attempts and counts.
func (r *record) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attempts { // those that run are recorded no longer
		a.recorded = false
	}
	r.attempts, r.counts, r.size, r.emptied = nil, nil, 0, 0
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
