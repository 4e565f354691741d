// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package payments

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Answers are what has been answered to calls with an idempotency key. They are safe for concurrent use.
type Answers struct {
	keep time.Duration
	room int

	mu    sync.Mutex // guards all below
	known map[string]*answer
	given []*answer // those that have been given, the oldest first
}

// answer is one of them. What stands below done is written before that is closed.
type answer struct {
	key     string
	request fingerprint
	done    chan struct{} // closed when the answer is given, or the call has failed

	reply   any
	failure error // of a call of which nobody knows whether it took effect
	failed  bool  // it took no effect, and is forgotten
	expires time.Time
}

// NewAnswers keeps each answer for a time, longer than any client repeats a call, and has room for a number
// of them, calls that are running included. It refuses a time or a number that is not positive.
func NewAnswers(keep time.Duration, room int) (*Answers, error) {
	if keep <= 0 || room <= 0 {
		return nil, fmt.Errorf("payments: NewAnswers(%v, %d): both must be positive", keep, room)
	}
	return &Answers{keep: keep, room: room, known: map[string]*answer{}}, nil
}

// Len is the number of answers that are kept now.
func (a *Answers) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(time.Now())
	return len(a.known)
}

// begin returns the answer of a key. The caller who is first must give it, with end; others wait for that.
func (a *Answers) begin(key string, request fingerprint) (known *answer, first bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(time.Now())
	known = a.known[key]
	switch {
	case known == nil && len(a.known) >= a.room:
		return nil, false, status.Errorf(codes.ResourceExhausted, "payments: %d answers are kept, and there is no room for another", a.room)
	case known == nil:
		known = &answer{key: key, request: request, done: make(chan struct{})}
		a.known[key] = known
		return known, true, nil
	case known.request != request:
		return nil, false, status.Error(codes.InvalidArgument, "payments: the idempotency key came with another request before: want a new key for each")
	default:
		return known, false, nil
	}
}

// end gives the answer, or forgets a call that failed without effect.
func (a *Answers) end(given *answer, reply any, failure error, failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	given.reply, given.failure, given.failed = reply, failure, failed
	if failed {
		delete(a.known, given.key)
	} else {
		given.expires = time.Now().Add(a.keep)
		a.given = append(a.given, given)
	}
	close(given.done)
}

// expire forgets the answers whose time has come. It requires mu.
func (a *Answers) expire(now time.Time) {
	for len(a.given) > 0 && !now.Before(a.given[0].expires) {
		delete(a.known, a.given[0].key)
		a.given[0] = nil // the array outlives it
		a.given = a.given[1:]
	}
}

// wait waits until the answer is given.
func (a *answer) wait(ctx context.Context) error {
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
