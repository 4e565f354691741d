// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Attempt is one request as the server saw it.
type Attempt struct {
	Method   string        // "/package.Service/Method"
	Number   int           // of the attempts of this method, from 1
	Conn     int           // the connection it came on, from 1
	Time     time.Time     // when its headers arrived
	Timeout  time.Duration // time left then until the client's deadline; 0: it has none
	Metadata metadata.MD   // what the client sent; not to be changed
	Request  []byte        // its first message as sent, nil if there was none; not to be changed

	Requests   [][]byte // what the server has received, as sent: the first 4 MiB; not to be changed
	Received   int      // how many messages that were, those left out of Requests included
	HalfClosed bool     // the server has seen that the client sends no more
	Sent       int      // messages the server has sent, or is sending

	End       time.Time  // when the server was done with it; zero while it runs
	Code      codes.Code // what it ended with; OK while it runs
	Cancelled bool       // the client, its deadline or the connection ended it before the step was done

	size int // of Requests, in bytes
}

// maxSize bounds what an attempt keeps in Requests, so that endless streams can be recorded.
const maxSize = 4 << 20

// received writes a message down. The first is kept whatever its size; after one that is too much,
// none is.
func (a *Attempt) received(b []byte) {
	a.Received++
	if a.Received == 1 {
		a.Request = b
	}
	const header = 24 // of the slice
	a.size += header + len(b)
	if a.Received == 1 || a.size <= maxSize {
		a.Requests = append(a.Requests, b)
	}
}

// clone is the attempt as it is now: later messages do not show in it.
func (a *Attempt) clone() Attempt {
	b := *a
	b.Requests = slices.Clip(b.Requests)
	return b
}

// keepAll is a record without bound.
const keepAll = -1

// record holds the attempts, in the order of their arrival.
type record struct {
	mu       sync.Mutex
	keep     int // keepAll, or how many at least
	attempts []*Attempt
	counts   map[string]int
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
// of arrival: all of it, or what [Keep] and [NoRecord] leave. Attempts that still run are included.
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
	s.record.attempts, s.record.counts = nil, nil
}
