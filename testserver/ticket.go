// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/status"
)

// ticket is an attempt's place in the queue.
type ticket struct {
	served chan struct{} // closed in the end
}

// pass waits until an attempt has been served, or returns the error with which it is refused, or
// the context's error.
func (q *Queue) pass(ctx context.Context) error {
	t := q.enter()
	if t == nil {
		return status.Errorf(q.refusal, "testserver: queue full: %d served, %d waiting", q.workers, q.length)
	}
	select {
	case <-t.served:
		return nil
	case <-ctx.Done():
		q.abandon(t)
		return ctx.Err()
	}
}

func (q *Queue) enter() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{served: make(chan struct{})}
	switch {
	case q.busy < q.workers:
		q.busy++
		q.serve(t, time.Now())
	case len(q.waiting) < q.length:
		q.waiting = append(q.waiting, t)
	default:
		q.load.Refused++
		return nil
	}
	return t
}

// serve occupies a worker from start on. Times follow from start, not from when timers fire, so
// that late timers do not take away capacity.
func (q *Queue) serve(t *ticket, start time.Time) {
	end := start.Add(q.service)
	time.AfterFunc(time.Until(end), func() { q.finish(t, end) })
}

// finish ends the service of t, and gives its worker to the first in the queue.
func (q *Queue) finish(t *ticket, end time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(t.served)
	q.load.Served++
	if len(q.waiting) == 0 {
		q.busy--
		return
	}
	first := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	q.serve(first, end)
}

func (q *Queue) abandon(t *ticket) {
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
