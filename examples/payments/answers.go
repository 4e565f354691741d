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

// Answers holds the responses to calls with idempotency keys. It is safe for concurrent use.
type Answers struct {
	keep time.Duration
	room int

	mu    sync.Mutex // guards all below
	known map[string]*answer
	given []*answer // completed answers, the oldest first
}

// answer is one of them. The fields below done are written before done is closed.
type answer struct {
	key     string
	request fingerprint
	done    chan struct{} // closed when the response is set, or the call has failed

	reply   any
	failure error // of a call that may or may not have taken effect
	failed  bool  // the call had no effect
	expires time.Time
}

// NewAnswers returns Answers that keep each response for a time, which must be longer than clients retry a call, and have room
// for a number of them, including running calls. It refuses a time or a number that is not positive.
func NewAnswers(keep time.Duration, room int) (*Answers, error) {
	if keep <= 0 || room <= 0 {
		return nil, fmt.Errorf("payments: NewAnswers(%v, %d): both must be positive", keep, room)
	}
	return &Answers{keep: keep, room: room, known: map[string]*answer{}}, nil
}

// Len returns the number of stored answers.
func (a *Answers) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(time.Now())
	return len(a.known)
}

// begin returns the response of a key. The first caller must set it, with end; others wait for that.
func (a *Answers) begin(key string, request fingerprint) (known *answer, first bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(time.Now())
	known = a.known[key]
	switch {
	case known == nil && len(a.known) >= a.room:
		return nil, false, status.Errorf(codes.ResourceExhausted, "payments: there is no room for more than %d answers", a.room)
	case known == nil:
		known = &answer{key: key, request: request, done: make(chan struct{})}
		a.known[key] = known
		return known, true, nil
	case known.request != request:
		return nil, false, status.Error(codes.InvalidArgument, "payments: the idempotency key was used for another request: want a new key for each")
	default:
		return known, false, nil
	}
}

// end sets the response, or removes that of a call that failed without effect.
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

// expire removes expired answers. a.mu must be held.
func (a *Answers) expire(now time.Time) {
	for len(a.given) > 0 && !now.Before(a.given[0].expires) {
		delete(a.known, a.given[0].key)
		a.given[0] = nil // the array outlives it
		a.given = a.given[1:]
	}
}

// wait waits until the response is set.
func (a *answer) wait(ctx context.Context) error {
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
