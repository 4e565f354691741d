// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
)

// singleStream is a stream with at most one attempt, by its policy, its mode or its options. It is gRPC's own
// stream, with the caller's options: gRPC fills the caller's targets and calls OnFinish. It returns gRPC's results,
// even after the end was reported: at a deadline, gRPC still holds received messages.
//
// The attempt's end is reported once. A call of the application that is inside gRPC reports it when it returns: its own
// result, or else OnFinish's error. If no call is inside, OnFinish reports the end of a context or of the
// connection immediately. Any other end without a call inside comes from an inner interceptor that receives ahead; the
// application has a second to notice it too.
type singleStream struct {
	grpc.ClientStream

	desc    *grpc.StreamDesc
	call    call
	attempt attempt
	inside  atomic.Int32 // calls that report the end when they return, including the opening of the stream
	timed   atomic.Bool  // the time of the first message is measured, and it has not arrived
	ended   atomic.Bool  // finished is set: the last call that leaves reports it

	mu        lock        // guards the engine and all below
	changed   sync.Cond   // broadcasts when the response is known
	unwatch   func() bool // stops watching the call's context
	finished  error       // OnFinish's error, io.EOF after a success; nil: gRPC has not called it
	end       singleEnd
	final     error         // of the call, once its response is known
	shown     error         // final, or gRPC's later error for the application
	panicked  panicked      // in a callback
	waiting   int           // waiting calls; only while timed
	idleSince time.Duration // when the last call stopped waiting
}

// singleEnd is who reports the end of the only attempt, once.
//
//	singleRuns ──┬── the first who finds the end ───────────────────────┬──► singleClaimed ── the engine knows it ──► singleOver
//	     │       └── an inner interceptor has found it ──► singleFound ─┘          │                                      ▲
//	     └── a callback panics ────────────────────────────────────────────────────┴──────────────────────────────────────┘
type singleEnd uint8

const (
	singleRuns    singleEnd = iota
	singleFound             // an inner interceptor has found it, and the application has a second to do so
	singleClaimed           // a goroutine reports the end
	singleOver              // the response is known
)

// openSingle opens a stream of one attempt. options are for that.
func openSingle(c call, desc *grpc.StreamDesc, open grpc.Streamer, options *attemptOptions) (grpc.ClientStream, error) {
	s := &singleStream{desc: desc, call: c, attempt: attempt{attemptOptions: options}}
	return s.begin(open)
}

// begin opens the stream.
func (s *singleStream) begin(open grpc.Streamer) (grpc.ClientStream, error) {
	s.changed.L = &s.mu
	if refused, err := s.start(); refused {
		return nil, err
	}
	returned := false
	defer s.leaveCall(&returned)
	a := &s.attempt
	stream, err := open(a.ctx, s.desc, s.call.cc, s.call.method, s.call.options.asGiven(a.attemptOptions)...)
	s.ClientStream = stream
	returned = true
	if err == nil {
		return s, nil
	}
	if s.claim() {
		s.settle(err, false)
	}
	return nil, s.awaitResult(err)
}

// start starts the engine. It reports whether the call is refused, with its error.
func (s *singleStream) start() (refused bool, err error) {
	now := s.call.now()
	var step attempts.Step
	defer func() {
		if s.attempt.ctx == nil { // it is refused, or a callback has panicked
			s.call.cancelTimeout()
		}
	}()
	s.guard(func() {
		step = s.call.startEngine(s.desc.ClientStreams, now)
	})
	s.panicked.rethrow()
	if step.Over {
		return true, s.call.finish(&unreported)
	}
	a := &s.attempt
	a.number, a.began, a.ctx, a.onEnd = 1, now.At, contextOfFirst(s.call.ctx), s
	s.call.options.targets = noTargets // gRPC itself fills the caller's targets, and calls OnFinish
	s.idleSince = now.At
	s.timed.Store(s.call.entry.responses != nil)
	s.enterCall()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch = context.AfterFunc(s.call.ctx, s.gone)
	return false, nil
}

// RecvMsg receives a message.
func (s *singleStream) RecvMsg(m any) error {
	returned := false
	s.enterCall()
	defer s.leaveCall(&returned)
	err := s.ClientStream.RecvMsg(m)
	returned = true
	switch {
	case err == nil && s.desc.ServerStreams:
		s.hear()
		return nil
	case err == nil, err == io.EOF:
		_ = s.finishCall(nil)
		return err
	default:
		return s.finishCall(err)
	}
}

// hear reports the first message to the engine.
func (s *singleStream) hear() {
	if !s.timed.Load() {
		return
	}
	now := s.call.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call.engine.Heard(1, now)
	s.timed.Store(false)
}

// enterCall begins a call of the application, which reports the end of the attempt when it returns.
func (s *singleStream) enterCall() {
	s.inside.Add(1)
	s.countWaiting(1)
}

// countWaiting adds n waiting calls: time without waiting calls doesn't count as the server's.
func (s *singleStream) countWaiting(n int) {
	if !s.timed.Load() {
		return
	}
	now := attempts.Now{At: clock.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportPause(now)
	s.waiting += n
}

// reportPause reports to the engine how long no call has waited. s.mu must be held.
func (s *singleStream) reportPause(now attempts.Now) {
	if s.timed.Load() && s.waiting == 0 {
		s.call.engine.Paused(now.At-s.idleSince, now)
	}
	s.idleSince = now.At
}

// SendMsg sends a message.
func (s *singleStream) SendMsg(m any) error {
	returned := false
	s.enterCall()
	defer s.leaveCall(&returned)
	err := s.ClientStream.SendMsg(m)
	returned = true
	if err == nil || err == io.EOF {
		return err
	}
	return s.finishCall(err)
}

// CloseSend closes the application's side.
func (s *singleStream) CloseSend() error {
	returned := false
	defer s.endUnless(&returned)
	err := s.ClientStream.CloseSend()
	returned = true
	if s.timed.Load() {
		now := s.call.now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reportPause(now)
		s.call.engine.Requested(1, now)
	}
	return err
}

// Header returns the headers, or nil if the stream ended without.
func (s *singleStream) Header() (metadata.MD, error) {
	returned := false
	s.enterCall()
	defer s.leaveCall(&returned)
	header, err := s.ClientStream.Header()
	returned = true
	if err != nil {
		return header, s.finishCall(err)
	}
	if header == nil {
		s.mu.Lock()
		finished := s.finished
		s.mu.Unlock()
		if finished != nil && finished != io.EOF { // else RecvMsg returns the error: gRPC may not have sent such a stream
			_ = s.finishCall(finished)
		}
	}
	return header, nil
}

// endUnless ends the stream unless a call of gRPC's has returned: an inner interceptor has panicked, or called Goexit.
func (s *singleStream) endUnless(returned *bool) {
	if !*returned && s.claim() {
		s.settle(attempts.ErrPanicked, true)
	}
}

// leaveCall ends a call of the application.
func (s *singleStream) leaveCall(returned *bool) {
	s.endUnless(returned)
	s.countWaiting(-1)
	if s.inside.Add(-1) == 0 && s.ended.Load() {
		s.reportFinished()
	}
}

// guard runs a function that calls user code. If that panics, or calls Goexit, the call is aborted.
func (s *singleStream) guard(f func()) {
	returned := false
	defer func() {
		if !returned {
			s.abort(recover())
		}
	}()
	f()
	returned = true
}

// abort ends the call after a callback has panicked with p.
func (s *singleStream) abort(p any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.panicked.note(p)
	if s.end != singleOver {
		s.call.engine.Abort(s.call.now())
		s.know()
	}
}

// onFinish is gRPC's OnFinish, in any goroutine.
func (s *singleStream) onFinish(err error) {
	s.mu.Lock()
	if s.finished == nil {
		s.finished = endOrEOF(err)
		s.ended.Store(true)
	}
	s.mu.Unlock()
	if s.inside.Load() == 0 {
		s.reportFinished()
	}
}

// gone runs when the call's context is over. OnFinish reports it a moment later, unless an inner interceptor doesn't pass
// on its options.
func (s *singleStream) gone() {
	if !s.attempt.ended() {
		time.AfterFunc(longestEnd, func() { s.onFinish(status.FromContextError(s.call.ctx.Err()).Err()) })
	}
}

// reportFinished reports OnFinish's error when no call is inside.
func (s *singleStream) reportFinished() {
	s.mu.Lock()
	finished, runs := s.finished, s.end == singleRuns
	messagesLeft := finished == io.EOF || finished != nil && isResponse(finished)
	if runs && messagesLeft {
		s.end = singleFound
	}
	s.mu.Unlock()
	switch {
	case !runs, finished == nil:
	case messagesLeft: // perhaps
		time.AfterFunc(timeToFind, func() { s.claimFinished(finished) })
	default:
		s.claimFinished(finished)
	}
}

func (s *singleStream) claimFinished(finished error) {
	if s.claim() {
		s.settle(endOf(finished), false)
	}
}

// finishCall reports the end of the attempt for a call of the application. It returns err with the details of the call, for the
// application.
func (s *singleStream) finishCall(err error) error {
	if s.claim() {
		if code := status.Code(err); s.attempt.ctx.Err() != nil || code == codes.Canceled || code == codes.DeadlineExceeded {
			s.attempt.awaitEnd() // another goroutine of gRPC may be ending it
		}
		s.settle(err, false)
	}
	return s.awaitResult(err)
}

// awaitResult waits for the response, and returns the result of an application's call that gRPC has ended with err.
func (s *singleStream) awaitResult(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.end != singleOver {
		s.changed.Wait()
	}
	s.panicked.rethrow()
	if err != nil {
		s.shown = amended(s.shown, err)
		err = s.shown
	}
	return err
}

// claim returns true for the first caller, which must report the end of the attempt.
func (s *singleStream) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.end < singleClaimed
	if first {
		s.end = singleClaimed
	}
	return first
}

// settle reports to the engine, and then to observers, that the attempt has ended with err, nil after success, or has
// panicked. The caller must have claimed the end. If a callback panics, the application's next call repeats the panic,
// because nothing can recover it in gRPC's goroutines.
func (s *singleStream) settle(err error, panicked bool) {
	defer s.call.cancelTimeout() // after the observers, who may make calls
	var step attempts.Step
	s.guard(func() { step = s.conclude(err, panicked) })
	s.guard(func() {
		s.call.notifyAttempt(&s.attempt, err)
		s.call.notifyDecision(&step, &s.attempt, err)
		s.call.notifyEnd(s.final)
	})
}

// conclude reports the end to the engine, and publishes the call's response.
func (s *singleStream) conclude(err error, panicked bool) attempts.Step {
	now := s.call.now()
	var r attempts.Result
	if !panicked {
		r = s.call.resultOf(&s.attempt, nil, err, s.call.local(&s.attempt, err, now), now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportPause(now)
	var step attempts.Step
	if panicked {
		s.attempt.took = now.At - s.attempt.began
		step = s.call.engine.Abort(now)
	} else {
		step = s.call.reportEnd(&s.attempt, r, now)
	}
	s.know()
	return step
}

// know publishes the response. s.mu must be held.
func (s *singleStream) know() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.end = singleOver
	s.final = s.call.answer(s.attempt.reported())
	s.shown = s.final
	s.changed.Broadcast()
}
