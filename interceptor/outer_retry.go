// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// outerRetries finds retries around a Retrier: a loop, an interceptor or a client library that makes a call again which has
// failed. A Retrier sees only what they pass in, so it counts calls in a row that have failed, each of them
//
//   - with the same request, by its address,
//   - to the same target and method,
//   - with the same deadline as the first or an earlier one, or in the same incoming call; without deadlines, with the same
//     context, and within a second,
//   - begun after the one before has failed, and not when that one's [Error.RetryAfter] was over.
//
// From the third on, they are outer retries. A call that succeeds with the request ends the count. A request that two calls have
// at the same time is shared by calls that know nothing of each other.
//
// One request of a method is watched at a time, for [watchedFor] since its last failure, so that outer retries are found in
// an outage of some seconds whatever else is called. No goroutine owns the state: goroutines whose calls end change it under mu, and
// so do timers that forget a request. A call that succeeds loads one number; while that is not 0, it looks its method up, and takes
// mu only if the request that is watched is its own.
type outerRetries struct {
	watched atomic.Int32 // how many requests are in the table; changed under mu
	table   sync.Map     // method → *watchedRequest; changed under mu
	mu      sync.Mutex
	number  uint64 // of the newest request; guarded by mu
}

// watchedRequest is a request whose call has failed.
type watchedRequest struct {
	number  uint64 // these do not change
	target  string
	request any // a pointer

	// Guarded by outerRetries.mu.
	origin          origin        // of the first of the calls
	calls, attempts int           // in a row
	ended           time.Duration // the last of them, on the budgets' clock
	retryAfter      time.Duration // what that one said
	shared          bool          // calls had it at the same time
	timer           *time.Timer   // has it forgotten
}

const (
	// watchedFor is how long a request is kept after its call has failed, if it does not come again.
	watchedFor = 5 * time.Second
	// mostWatched bounds the requests that are kept: names of methods may come from users.
	mostWatched = 100
	// fewestCalls in a row have failed when the last of them are outer retries.
	fewestCalls = 3
)

// outside is what a caller has passed to the Retrier.
type outside struct {
	ctx     context.Context
	request any // nil if there is none, or the application has seen part of the answer
}

// origin is what tells contexts of one caller from those of others.
type origin struct {
	in       *inboundCall // nil: in none, or in one without a server interceptor
	deadline time.Time    // zero: none
	done     <-chan struct{}
}

func originOf(ctx context.Context) origin {
	deadline, _ := ctx.Deadline()
	return origin{inbound(ctx), deadline, ctx.Done()}
}

// leadsTo reports whether a later call is the same caller's, by its context. gap is the time between them.
func (o origin) leadsTo(next origin, gap time.Duration) bool {
	switch {
	case o.in != next.in:
		return false
	case o.in != nil:
		return true
	case o.deadline.IsZero():
		return next.deadline.IsZero() && o.done == next.done && gap <= time.Second
	default:
		return !next.deadline.IsZero() && !next.deadline.After(o.deadline)
	}
}

// succeeded ends the count of a request.
func (o *outerRetries) succeeded(method string, request any) {
	if o.watched.Load() == 0 {
		return
	}
	if w := o.of(method); w != nil && w.request == request {
		o.forget(method, w.number)
	}
}

func (o *outerRetries) of(method string) *watchedRequest {
	found, _ := o.table.Load(method)
	w, _ := found.(*watchedRequest)
	return w
}

// forget forgets a request, unless another is watched by now.
func (o *outerRetries) forget(method string, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.of(method); w != nil && w.number == number {
		w.timer.Stop()
		o.table.Delete(method)
		o.watched.Add(-1)
	}
}

// failedCall is one that has failed with a retryable code.
type failedCall struct {
	outside

	method, target string
	began          time.Duration
	attempts       int
	retryAfter     time.Duration
}

// failed counts a call, and returns how many in a row have failed with its request, and with how many attempts: 1 call if
// nothing tells.
func (o *outerRetries) failed(f failedCall) (calls, sent int) {
	if !identifies(f.request) {
		return 1, f.attempts
	}
	now, from := clock.Now(), originOf(f.ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.of(f.method)
	switch {
	case w == nil && o.watched.Load() < mostWatched:
		o.number++
		number := o.number // a timer that is stopped may hold its function for some time, and must not hold the request
		w = &watchedRequest{number: number, target: f.target, request: f.request, origin: from}
		method := f.method
		w.timer = time.AfterFunc(watchedFor, func() { o.forget(method, number) })
		o.table.Store(f.method, w)
		o.watched.Add(1)
	case w == nil, w.request != f.request, w.target != f.target:
		return 1, f.attempts // another is watched
	case w.shared, f.began < w.ended:
		w.shared = true
		return 1, f.attempts
	case w.obeyed(f.began), !w.origin.leadsTo(from, f.began-w.ended):
		w.origin, w.calls, w.attempts = from, 0, 0
	default:
		w.timer.Reset(watchedFor)
	}
	w.calls++
	w.attempts += f.attempts
	w.ended, w.retryAfter = now, f.retryAfter
	return w.calls, w.attempts
}

// obeyed reports whether a call begins when RetryAfter says, as far as timers are exact.
func (w *watchedRequest) obeyed(began time.Duration) bool {
	const late = 5 * time.Millisecond
	waited := began - w.ended
	return w.retryAfter > 0 && waited >= w.retryAfter && waited-w.retryAfter <= w.retryAfter/4+late
}

// identifies reports whether a request is told from others by its address. Values without size may share theirs.
func identifies(request any) bool {
	v := reflect.ValueOf(request)
	return v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Elem().Size() > 0
}

// noteOuter notes a call that has ended, and warns once a method if it is an outer retry.
func (c *call) noteOuter(end attempts.End, err error) {
	r := c.retrier
	if err == nil {
		r.outer.succeeded(c.method, c.outside.request)
		return
	}
	if c.mode() != policy.ModeEnforce || min(c.options.maxAttempts, c.policy.MaxAttempts()) < 2 || !multiplies(end.Reason) {
		return
	}
	calls, sent := r.outer.failed(failedCall{c.outside, c.method, c.target(), c.start, end.Attempts, end.RetryAfter})
	who := "A loop, an interceptor or the client library"
	if outerRetry(c.outside.ctx) {
		who, calls = "go-grpc-middleware", max(calls, fewestCalls)
	}
	if calls >= fewestCalls {
		c.outerRetry = true
		r.warnOnce(&outerCalls, c.method, c.method, who, calls, sent)
	}
}

// noteRequest keeps the request of a stream. s.mu must be held.
func (s *stream) noteRequest(m any) {
	if !s.desc.ClientStreams {
		s.call.outside.request = m
	}
}

// leaveRequest lets go of the request of a stream that is committed: what follows is no outer retry, since the application has
// seen part of the answer. s.mu must be held.
func (s *stream) leaveRequest() {
	if request := s.call.outside.request; request != nil && !s.machine.Over() {
		s.call.outside.request = nil
		s.call.retrier.outer.succeeded(s.call.method, request)
	}
}

// multiplies reports whether attempts multiply if a call that has ended for a reason is made again: its code is retryable, and
// its caller still waits.
func multiplies(reason policy.Reason) bool {
	switch reason {
	case policy.ReasonNonRetryable, policy.ReasonCommitted, policy.ReasonDeadlineExceeded, policy.ReasonCancelled, policy.ReasonClosed, policy.ReasonModeOff:
		return false
	default:
		return true
	}
}

// outerRetry reports whether a call is a retry of go-grpc-middleware's, version 2 or 1.
func outerRetry(ctx context.Context) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	return len(md["x-retry-attempt"]) > 0 || len(md["x-retry-attempty"]) > 0
}
