// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// streamAttempt is one attempt of a stream.
type streamAttempt struct {
	attempt

	call *stream

	// The stream's lock guards all below. The client stream does not change once it is there.
	options    []grpc.CallOption // that gRPC gets
	stream     grpc.ClientStream // nil if it is not open yet, or could not be opened
	headers    metadata.MD       // that it has brought
	headed     bool              // it was asked for them
	message    any               // its first message, until the application has it
	received   bool              // RecvMsg has told admission of its first message; RecvMsg alone uses it
	delivered  bool              // the application has it already: it was received in its place
	reading    bool              // somebody waits for its answer
	cut        error             // what gRPC said meanwhile of the end of the call's context or connection
	sending    bool              // somebody sends to it
	sent       int               // messages of the replay buffer that it was sent
	accepted   int               // of those, how many it has taken
	closed     bool              // it was sent the close
	sendFailed bool              // it takes nothing more: it has ended
	refused    bool              // a message could not be sent to it for a reason on this side
	finished   error             // what OnFinish has said of its end; nil before that, and after success
	abandoned  bool              // it was cancelled for another, or since the call is over
	over       bool              // its end is known
}

// open reports whether the call may still be that of t. It requires mu.
func (t *streamAttempt) open() bool { return t.stream != nil && !t.over && !t.abandoned }

// add adds the attempt with the number n, which is about to be opened. It requires mu.
func (s *stream) add(t *streamAttempt, n int, now attempts.Now) {
	t.options = s.call.assign(&t.attempt, n, now)
	if s.call.flags&sentOnce != 0 {
		t.options = s.call.options.withSendOnce(t.options)
	}
	t.ctx, t.cancel = context.WithCancel(t.ctx)
	t.call, t.onEnd = s, t
	s.running = append(s.running, t)
}

// run opens an attempt after the first, in a goroutine of ours.
func (s *stream) run(t *streamAttempt) {
	returned := false
	defer s.catch(t, &returned)
	s.openAttempt(t)
	returned = true
}

// openAttempt opens an attempt. If it cannot be opened, it has failed.
func (s *stream) openAttempt(t *streamAttempt) {
	stream, err := s.openGuarded(t)
	if t.number == 1 {
		s.adapt()
	}
	if err != nil {
		s.report(t, err)
		return
	}
	s.mu.Lock()
	defer s.unlock()
	t.stream, s.usable = stream, true
	switch {
	case s.single:
		s.commit(t, policy.CommitNone) // nothing need be kept, but that is not why no other follows
	case s.races, t.abandoned, t.attempt.ended.Load():
		t.reading = true
		go s.listen(t)
	}
	s.resumeSenders()
	s.changed.Broadcast()
}

func (s *stream) openGuarded(t *streamAttempt) (grpc.ClientStream, error) {
	returned := false
	defer s.guard(t, &returned)
	stream, err := s.open(t.ctx, s.desc, s.call.cc, s.call.method, t.options...)
	returned = true
	return stream, err
}

// adapt takes the policy of a call that began before its connection had received any: opening its first attempt
// has waited for that.
func (s *stream) adapt() { s.withCallbacks(s.catchUp) }

func (s *stream) catchUp() {
	s.mu.Lock()
	defer s.unlock()
	if !s.over && s.call.catchUp() {
		now := s.call.now()
		s.call.limit()
		s.learn()
		s.act(s.call.adapt(now), now)
	}
}

// abandon cancels an attempt, and sees to it that its end is found. It requires mu.
func (s *stream) abandon(t *streamAttempt) {
	t.abandoned = true
	t.cancel()
	switch {
	case t.stream == nil, t.reading, t.over:
	case t == s.chosen: // after a panic in another; the application may be receiving from it
		go s.report(t, errGivenUp)
	default:
		t.reading = true
		go s.listen(t)
	}
}

// ended runs when gRPC has ended an attempt, in any goroutine. It is all that is heard of a stream whose
// application cancels it, or closes the connection, and never calls again.
func (t *streamAttempt) ended(err error) {
	s := t.call
	s.mu.Lock()
	t.finished = err
	if err == nil || answered(err) {
		s.mu.Unlock()
		return // somebody is receiving that, and reports it
	}
	gone := t.stream != nil && s.call.gone(s.call.now()) != ""
	if gone && t.reading {
		t.cut, gone = err, false
	}
	s.mu.Unlock()
	if gone {
		s.report(t, err)
	}
}

// report has the engine take in that an attempt has ended with err, which is nil after success. The first
// report counts.
func (s *stream) report(t *streamAttempt, err error) {
	if s.claim(t) {
		s.conclude(t, err, false)
	}
}

// conclude is report for the one who has claimed the end of t.
func (s *stream) conclude(t *streamAttempt, err error, resumes bool) {
	s.withCallbacks(func() { s.takeEnd(t, err, resumes) })
}

func (s *stream) takeEnd(t *streamAttempt, err error, resumes bool) {
	now := s.call.now()
	r := s.call.result(&t.attempt, nil, err, now)
	if resumes {
		r.Resumes, r.Progress = true, s.resume.progress
		s.resume.progress = false
	}
	t.cancel()
	s.mu.Lock()
	defer s.unlock()
	s.settle(t, r, now)
}

// claim makes the caller the one who reports the end of an attempt; false if somebody has done so.
func (s *stream) claim(t *streamAttempt) bool {
	s.mu.Lock()
	defer s.unlock()
	if t.over {
		return false
	}
	t.over = true
	return true
}

// settle has the engine take in how an attempt has ended. It requires mu.
func (s *stream) settle(t *streamAttempt, r attempts.Result, now attempts.Now) {
	s.running = slices.DeleteFunc(s.running, func(other *streamAttempt) bool { return other == t })
	if s.over { // a callback has panicked meanwhile
		s.direct.Store(nil)
		return
	}
	step := s.call.ended(&t.attempt, r, now)
	if s.call.engine.Answer() == t.number {
		s.answer = t
	}
	if r.Err != nil && !r.Local {
		s.failure = r.Err
	}
	if t == s.chosen {
		s.direct.Store(nil) // a message that gRPC still holds comes too late
		if step.Decided == t.number && step.Decision.Retry {
			s.chosen = nil // the call is resumed
		}
	}
	s.queueAttempt(t, r.Err, step.Place)
	s.queueDecision(&step, &t.attempt, r.Err)
	s.act(step, now)
}

// queueAttempt has the observers told of an attempt that has ended. It requires mu.
func (s *stream) queueAttempt(t *streamAttempt, err error, place attempts.Place) {
	if r := s.call.retrier; r.tellsAttempts {
		e := s.call.attemptEvent(&t.attempt, err, place)
		s.events = append(s.events, func() { r.notifyAttempt(s.call.ctx, e) })
	}
}

// guard, deferred where an inner interceptor may panic or call Goexit, ends the call with t before that goes on.
func (s *stream) guard(t *streamAttempt, returned *bool) {
	if *returned {
		return
	}
	p := recover()
	s.panicked(t, p)
	if p != nil {
		panic(p)
	}
}

// catch is guard for goroutines of ours: what panics next is a call of the application's.
func (s *stream) catch(t *streamAttempt, returned *bool) {
	if !*returned {
		s.panicked(t, recover())
	}
}

// withCallbacks runs f, which may call what the user has given: breaker, budget, classifier, Resume's function. If that
// panics, or calls Goexit, the call is over, and the panic comes up in the application's next call: f may run in a
// goroutine of ours or of gRPC's, where nobody can recover it.
func (s *stream) withCallbacks(f func()) {
	returned := false
	defer func() {
		if !returned {
			p := recover()
			s.mu.Lock()
			defer s.unlock()
			s.abort(p)
		}
	}()
	f()
	returned = true
}

// abort ends the call since a callback has panicked with p. It requires mu.
func (s *stream) abort(p any) {
	s.caught.note(p)
	if s.over {
		return
	}
	now := s.call.now()
	step := s.call.engine.Abort(now)
	step.Over = true // where the callback was the last, the engine is over already
	s.act(step, now)
}

// errPanicked is how an attempt has ended that has panicked, and a call whose observer has.
var errPanicked = status.Error(codes.Unknown, "a panic has ended the call")

// panicked ends the call since an inner interceptor has panicked with p in t, which may have ended before, or an
// observer.
func (s *stream) panicked(t *streamAttempt, p any) {
	s.mu.Lock()
	again := s.caught.happened
	s.caught.note(p)
	s.mu.Unlock()
	first := s.claim(t)
	t.cancel()
	now := s.call.now()
	s.mu.Lock()
	defer s.unlock()
	switch {
	case first:
		t.took = now.At - t.began
		s.settle(t, attempts.Result{Err: errPanicked, Panicked: true}, now)
	case !again && !s.over:
		s.act(s.call.engine.Panicked(now), now)
	}
}
