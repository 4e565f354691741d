// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Queue is a resource that can be overloaded: some workers, each of which serves one attempt at a
// time and takes the same time for each, and a queue of bounded length before them, first come,
// first served. What finds the queue full is refused at once.
//
// An attempt whose client has gone away keeps its place and is served all the same, as in most real
// servers, which learn too late that nobody waits: this is what makes an overload outlive its
// cause. [DropAbandoned] changes that.
//
// Many steps, methods and servers may share a Queue. It starts no goroutines of its own.
type Queue struct {
	workers int
	service time.Duration
	length  int
	refusal codes.Code
	drop    bool
	mistake error

	mu      sync.Mutex
	busy    int
	waiting []*ticket
	load    Load
}

// Load is what has passed through a [Queue].
type Load struct {
	Busy      int // attempts being served now
	Waiting   int // attempts waiting now
	Served    int // attempts served to the end, abandoned ones included
	Refused   int // attempts that found the queue full
	Abandoned int // attempts whose client went away before they were served to the end
}

// QueueOption is a setting of a [Queue].
type QueueOption func(*Queue)

// RefuseWith sets the code of attempts that find the queue full; RESOURCE_EXHAUSTED otherwise.
func RefuseWith(code codes.Code) QueueOption {
	return func(q *Queue) {
		if code == codes.OK {
			q.mistake = errors.Join(q.mistake, errors.New("RefuseWith(OK): want another code"))
		}
		q.refusal = code
	}
}

// DropAbandoned takes attempts whose client has gone away out of the queue. Those already being
// served keep their worker.
func DropAbandoned() QueueOption { return func(q *Queue) { q.drop = true } }

// NewQueue makes a queue with workers ≥ 1, each taking serviceTime > 0 for an attempt, before which
// up to length ≥ 0 attempts wait. Its capacity is workers/serviceTime. Impossible values are
// reported by [Server.On].
func NewQueue(workers int, serviceTime time.Duration, length int, opts ...QueueOption) *Queue {
	q := &Queue{workers: workers, service: serviceTime, length: length, refusal: codes.ResourceExhausted}
	if workers < 1 || serviceTime <= 0 || length < 0 {
		q.mistake = fmt.Errorf("queue with %d workers, service time %v, length %d: want at least 1, more than 0, at least 0",
			workers, serviceTime, length)
	}
	for _, opt := range opts {
		opt(q)
	}
	return q
}

// Overload answers OK through a queue of its own: OK().Through(NewQueue(…)). Methods and servers
// that get this same Step share the queue.
func Overload(workers int, serviceTime time.Duration, queue int, opts ...QueueOption) Step {
	return OK().Through(NewQueue(workers, serviceTime, queue, opts...))
}

// Load returns what has passed so far.
func (q *Queue) Load() Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	load := q.load
	load.Busy, load.Waiting = q.busy, len(q.waiting)
	return load
}
