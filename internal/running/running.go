// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package running counts the calls that run, for observers that are told of a call's start and end.
package running

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Calls are the calls of a Retrier that run. The zero value has none. A call whose inner interceptor panics is told no end, so it counts
// as running for ever.
type Calls struct {
	mu     sync.Mutex // guards all below, and the fields of calls
	begun  uint64
	groups map[group]*sequence // those with calls
}

// group is what calls are counted by.
type group struct{ method, target string }

// sequence is a list of calls in the order in which they began.
type sequence struct {
	calls          int
	oldest, newest *call
}

// call is a call that runs. It is also the context of the call, which saves an allocation.
type call struct {
	context.Context

	all          *Calls
	number       uint64
	group        group
	began        time.Time
	older, newer *call
	ended        bool
}

// Value implements [context.Context]: the key of a call is the list that it belongs to.
func (c *call) Value(key any) any {
	if key == c.all {
		return c
	}
	return c.Context.Value(key)
}

// String prevents printing a context from reading fields without the lock.
func (c *call) String() string { return "a running call" }

// Begin counts a call, and returns its context, which End needs.
func (r *Calls) Begin(parent context.Context, method, target string, now time.Time) context.Context {
	c := &call{Context: parent, all: r, group: group{method, target}, began: now}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.groups[c.group]
	if s == nil {
		s = new(sequence)
		if r.groups == nil {
			r.groups = map[group]*sequence{}
		}
		r.groups[c.group] = s
	}
	r.begun++
	c.number = r.begun
	s.calls++
	c.older = s.newest
	if s.newest == nil {
		s.oldest = c
	} else {
		s.newest.newer = c
	}
	s.newest = c
	return c
}

// End ends the call whose context Begin has returned, or a parent of whose context it was. It ignores others, whose beginning was not
// counted.
func (r *Calls) End(ctx context.Context) {
	c, ok := ctx.Value(r).(*call)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.ended { // a call that was made with the context of an ended one, by an observer that was not told of its start
		return
	}
	c.ended = true
	s := r.groups[c.group]
	s.calls--
	if c.older == nil {
		s.oldest = c.newer
	} else {
		c.older.newer = c.newer
	}
	if c.newer == nil {
		s.newest = c.older
	} else {
		c.newer.older = c.older
	}
	c.older, c.newer = nil, nil
	if s.calls == 0 {
		delete(r.groups, c.group)
	}
}

// Number returns the number of the call to which a context belongs, from 1; 0 if its beginning was not counted.
func (r *Calls) Number(ctx context.Context) uint64 {
	if c, ok := ctx.Value(r).(*call); ok {
		return c.number
	}
	return 0
}

// Method has the calls of a method at a target that run.
type Method struct {
	Method, Target string
	Calls          int       // at least 1
	Since          time.Time // when the oldest of them began
}

// Methods returns the methods with calls that run, the one with the oldest call first.
func (r *Calls) Methods() (list []Method) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, s := range r.groups {
		list = append(list, Method{of.method, of.target, s.calls, s.oldest.began})
	}
	slices.SortFunc(list, func(a, b Method) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Target, b.Target))
	})
	return list
}
