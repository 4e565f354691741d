// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/testserver"
)

// QueueConfig are the settings of a queue. Its capacity is Workers/Time.
type QueueConfig struct {
	Workers       int                  // that serve immediately
	Time          time.Duration        // that each attempt takes, more than 0
	Draw          func() time.Duration // if set, how long the next attempt takes, instead of Time; the queue calls it under its lock
	Length        int                  // attempts that wait at most
	Refuse        codes.Code           // of attempts that find the queue full; OK: RESOURCE_EXHAUSTED
	DropAbandoned bool                 // attempts whose client has gone away leave the queue, unless a worker serves them
}

// Queue is a resource that can be overloaded: some workers, each of which serves one attempt at a
// time, and a queue of bounded length before them, first come,
// first served. An attempt that finds the queue full is refused immediately.
//
// An attempt whose client has gone away keeps its place and is still served, as in most real
// servers, which learn too late that the client has gone: this is what makes an overload outlive its
// cause. DropAbandoned changes that.
//
// Many steps, methods and servers may share a Queue. It starts no goroutines of its own.
type Queue struct {
	config QueueConfig

	mu      sync.Mutex // guards all below
	workers int
	busy    int
	waiting []*waiter
}

// NewQueue makes a queue. The error says which number is too small.
func NewQueue(c QueueConfig) (*Queue, error) {
	if c.Workers < 1 || c.Time <= 0 || c.Length < 0 {
		return nil, fmt.Errorf("queue with %d workers, service time %v, length %d: want at least 1, more than 0, at least 0",
			c.Workers, c.Time, c.Length)
	}
	c.Refuse = cmp.Or(c.Refuse, codes.ResourceExhausted)
	return &Queue{config: c, workers: c.Workers}, nil
}

// Serve returns step with the queue before its headers.
func (q *Queue) Serve(step testserver.Step) testserver.Step { return step.Before(q.pass) }

// SetWorkers lets workers serve from now on: with fewer, those that are busy end what they do, with more, waiting
// attempts are served immediately. With 0, none is served until there are more. The error says that workers is negative.
func (q *Queue) SetWorkers(workers int) error {
	if workers < 0 {
		return fmt.Errorf("queue with %d workers: want at least 0", workers)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers = workers
	q.serveWaiting(time.Now())
	return nil
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
		return status.Errorf(q.config.Refuse, "queue full: %d served, %d waiting", busy, q.config.Length)
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
	case len(q.waiting) < q.config.Length:
		q.waiting = append(q.waiting, t)
	default:
		return nil, q.busy
	}
	return t, q.busy
}

// serve occupies a worker from start on. Times follow from start, not from when timers fire, so
// that late timers do not take away capacity.
func (q *Queue) serve(t *waiter, start time.Time) {
	took := q.config.Time
	if q.config.Draw != nil {
		took = q.config.Draw()
	}
	end := start.Add(took)
	time.AfterFunc(time.Until(end), func() { q.endService(t, end) })
}

// endService ends the service of t, and gives its worker to the first in the queue.
func (q *Queue) endService(t *waiter, end time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(t.served)
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
	if !q.config.DropAbandoned {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}
