// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// outerRetries detects retries around a Retrier: a loop, an interceptor or a client library that retries failed
// calls. A Retrier sees only their arguments, so it counts consecutive failed calls, each of them
//
//   - with the same request: by its address, and, of a unary call's protobuf message, by its content, since loops
//     set a field of one message for each of many requests,
//   - to the same target and method,
//   - with the same deadline as the first or an earlier one, or in the same incoming call; without deadlines, with the same
//     context, and within a second,
//   - begun after the previous one has failed, but not at the end of its [Error.RetryAfter].
//
// The third and later ones are outer retries. A successful call with the request ends the count. If two calls use a request
// at the same time, independent callers share it.
//
// One request per method is watched at a time, for [watchedFor] after its last failure. So outer retries are detected within
// some seconds of an outage, whatever other calls there are. No goroutine owns the state: goroutines whose calls end change it under
// mu, as do timers that drop a request. A successful call loads one number. If it is not 0, the call looks up its method, and takes
// mu only if the watched request is its own.
type outerRetries struct {
	watched atomic.Int32 // the number of requests in the table; changed under mu
	table   sync.Map     // method → *watchedRequest; changed under mu
	mu      sync.Mutex
	number  uint64 // of the newest request; guarded by mu
}

// watchedRequest is the request of a failed call.
type watchedRequest struct {
	number  uint64 // immutable, like request
	target  string
	request any // a pointer

	// Guarded by outerRetries.mu.
	origin          origin        // of the first call
	content         uint64        // a hash of the request's content
	calls, attempts int           // consecutive
	ended           time.Duration // the last call's end, on the budgets' clock
	retryAfter      time.Duration // of the last call
	shared          bool          // concurrent calls used it
	timer           *time.Timer   // drops it
}

const (
	// watchedFor is how long a request is kept after its last failure.
	watchedFor = 5 * time.Second
	// mostWatched bounds the watched requests: users may choose the names of methods.
	mostWatched = 100
	// fewestCalls is the number of consecutive failures from which on they are outer retries.
	fewestCalls = 3
)

// outside has the properties of a call by which outer retries are recognized.
type outside struct {
	ctx     context.Context
	request any  // nil if there is none, or after the application has seen part of the answer
	lent    bool // the application does not change the request before the call is over
}

// origin identifies the caller, by its context.
type origin struct {
	in       *inboundCall // nil: none, or one without a server interceptor
	deadline time.Time    // zero: none
	done     <-chan struct{}
}

func originOf(ctx context.Context) origin {
	deadline, _ := ctx.Deadline()
	return origin{inbound(ctx), deadline, ctx.Done()}
}

// leadsTo reports whether a later call has the same caller, by its context. gap is the time between the calls.
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
	if w := o.watchedRequest(method); w != nil && w.request == request {
		o.forget(method, w.number)
	}
}

func (o *outerRetries) watchedRequest(method string) *watchedRequest {
	found, _ := o.table.Load(method)
	w, _ := found.(*watchedRequest)
	return w
}

// forget drops a request, unless the method's request is another one by now.
func (o *outerRetries) forget(method string, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.watchedRequest(method); w != nil && w.number == number {
		w.timer.Stop()
		o.table.Delete(method)
		o.watched.Add(-1)
	}
}

// failedCall is a call that has failed with a retryable code.
type failedCall struct {
	outside

	method, target string
	began          time.Duration
	attempts       int
	retryAfter     time.Duration
}

// countFailure counts a call. It returns the number of consecutive failures with its request, 1 if unknown, and their
// attempts.
func (o *outerRetries) countFailure(f failedCall) (calls, sent int) {
	if !identifies(f.request) {
		return 1, f.attempts
	}
	if w := o.watchedRequest(f.method); w != nil && w.request != f.request {
		return 1, f.attempts // another is watched
	}
	now, from, content := clock.Now(), originOf(f.ctx), f.content()
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watchedRequest(f.method)
	switch {
	case w == nil && o.watched.Load() < mostWatched:
		o.number++
		number := o.number // a stopped timer may keep its function for some time, which must not keep the request
		w = &watchedRequest{number: number, target: f.target, request: f.request, origin: from, content: content}
		method := f.method
		w.timer = time.AfterFunc(watchedFor, func() { o.forget(method, number) })
		o.table.Store(f.method, w)
		o.watched.Add(1)
	case w == nil, w.request != f.request, w.target != f.target:
		return 1, f.attempts // another request is watched
	case w.shared, f.began < w.ended:
		w.shared = true
		return 1, f.attempts
	case w.content != content, w.obeyed(f.began), !w.origin.leadsTo(from, f.began-w.ended):
		w.origin, w.content, w.calls, w.attempts = from, content, 0, 0
	default:
		w.timer.Reset(watchedFor)
	}
	w.calls++
	w.attempts += f.attempts
	w.ended, w.retryAfter = now, f.retryAfter
	return w.calls, w.attempts
}

// obeyed reports whether a call begins at the end of RetryAfter, within the precision of timers.
func (w *watchedRequest) obeyed(began time.Duration) bool {
	const late = 5 * time.Millisecond
	waited := began - w.ended
	return w.retryAfter > 0 && waited >= w.retryAfter && waited-w.retryAfter <= w.retryAfter/4+late
}

var seed = maphash.MakeSeed()

// content returns a hash of what a request says; 0 if it must not be read, as after a stream's SendMsg.
func (o outside) content() uint64 {
	if !o.lent || protobufType(o.request) == nil {
		return 0
	}
	m, _ := o.request.(proto.Message)
	text, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(m)
	if err != nil {
		return 0
	}
	return maphash.Bytes(seed, text)
}

// identifies reports whether a request's address is unique. Values of size 0 may share theirs.
func identifies(request any) bool {
	v := reflect.ValueOf(request)
	return v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Elem().Size() > 0
}

// noteOuter records the end of a call, and warns once per method if the call is an outer retry.
func (c *call) noteOuter(end *attempts.End, err error) {
	r := c.retrier
	if err == nil {
		r.outer.succeeded(c.method, c.outside.request)
		return
	}
	if c.mode() != policy.ModeEnforce || min(c.options.maxAttempts, c.policy.MaxAttempts()) < 2 || !multiplies(end.Reason) {
		return
	}
	calls, sent := r.outer.countFailure(failedCall{c.outside, c.method, c.target(), c.start, end.Attempts, end.RetryAfter})
	who := "A loop, an interceptor or the client library"
	if outerRetry(c.outside.ctx) {
		who, calls = "go-grpc-middleware", max(calls, fewestCalls)
	}
	if calls >= fewestCalls {
		c.outerRetry = true
		r.warnOnce(&outerCalls, c.method, c.method, who, calls, sent)
	}
}

// noteRequest records the request of a stream. s.mu must be held.
func (s *stream) noteRequest(m any) {
	if !s.desc.ClientStreams {
		s.call.outside.request = m
	}
}

// leaveRequest drops the request of a committed stream: the application has seen part of the answer, so a later call isn't
// an outer retry. s.mu must be held.
func (s *stream) leaveRequest() {
	if request := s.call.outside.request; request != nil && !s.machine.Over() {
		s.call.outside.request = nil
		s.call.retrier.outer.succeeded(s.call.method, request)
	}
}

// multiplies reports whether attempts multiply if a call that ended for a reason is made again: its code is retryable, and
// its caller is still waiting.
func multiplies(reason policy.Reason) bool {
	switch reason {
	case policy.ReasonNonRetryable, policy.ReasonCommitted, policy.ReasonDeadlineExceeded, policy.ReasonCancelled, policy.ReasonClosed, policy.ReasonModeOff:
		return false
	default:
		return true
	}
}

// outerRetry reports whether a call is a retry by go-grpc-middleware, version 2 or 1.
func outerRetry(ctx context.Context) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	return len(md["x-retry-attempt"]) > 0 || len(md["x-retry-attempty"]) > 0
}
