// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	service time.Duration
	length  int
	refusal codes.Code
	drop    bool
	err     error

	mu      sync.Mutex // guards all below
	workers int
	busy    int
	waiting []*waiter
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
			q.err = errors.Join(q.err, errors.New("RefuseWith(OK): want another code"))
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
		q.err = fmt.Errorf("queue with %d workers, service time %v, length %d: want at least 1, more than 0, at least 0",
			workers, serviceTime, length)
	}
	for _, opt := range opts {
		opt(q)
	}
	return q
}

// SetWorkers lets workers serve from now on: with fewer, those that are busy end what they do, with more, waiting
// attempts are served at once. With 0, none is served until there are more. The error says that workers is negative.
func (q *Queue) SetWorkers(workers int) error {
	if workers < 0 {
		return fmt.Errorf("testserver: queue with %d workers: want at least 0", workers)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers = workers
	q.serveWaiting(time.Now())
	return nil
}

// Load returns what has passed so far.
func (q *Queue) Load() Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	load := q.load
	load.Busy, load.Waiting = q.busy, len(q.waiting)
	return load
}

// waiter is an attempt in the queue, or with a worker.
type waiter struct {
	served chan struct{} // closed in the end
}

// pass waits until an attempt has been served, or returns the error with which it is refused, or
// the context's error.
func (q *Queue) pass(ctx context.Context) error {
	t, busy := q.enter()
	if t == nil {
		return status.Errorf(q.refusal, "testserver: queue full: %d served, %d waiting", busy, q.length)
	}
	select {
	case <-t.served:
		return nil
	case <-ctx.Done():
		q.abandon(t)
		return ctx.Err()
	}
}

// enter returns nil if the queue is full, and how many attempts are being served.
func (q *Queue) enter() (t *waiter, busy int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t = &waiter{served: make(chan struct{})}
	switch {
	case q.busy < q.workers:
		q.busy++
		q.serve(t, time.Now())
	case len(q.waiting) < q.length:
		q.waiting = append(q.waiting, t)
	default:
		q.load.Refused++
		return nil, q.busy
	}
	return t, q.busy
}

// serve occupies a worker from start on. Times follow from start, not from when timers fire, so
// that late timers do not take away capacity.
func (q *Queue) serve(t *waiter, start time.Time) {
	end := start.Add(q.service)
	time.AfterFunc(time.Until(end), func() { q.finish(t, end) })
}

// finish ends the service of t, and gives its worker to the first in the queue.
func (q *Queue) finish(t *waiter, end time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(t.served)
	q.load.Served++
	q.busy--
	q.serveWaiting(end)
}

// serveWaiting gives the workers that are free from start on to the first in the queue. It requires mu.
func (q *Queue) serveWaiting(start time.Time) {
	for q.busy < q.workers && len(q.waiting) > 0 {
		first := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		q.busy++
		q.serve(first, start)
	}
}

func (q *Queue) abandon(t *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.load.Abandoned++
	if !q.drop {
		return
	}
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}
