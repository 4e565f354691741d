// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind. It works as gRPC's own retries do: a log of what was sent, one lock, one attempt at a time.
//
//	         ┌──────── the next attempt was sent the log ───────┐
//	         ▼                                                  │
//	begin ─► open ─── an operation has found an end ──────► deciding ─── no attempt follows ──► over
//	         │                                                ▲ │
//	         │ the application has seen part of the attempt   │ │ headers may come before the end
//	         │                                                │ ▼
//	         └──────────────────────────────────────────► committed
//	                                                      its end, or that of the call
//
// While a stream is open, an operation of the application runs on the newest attempt, without the lock. If it fails, its goroutine decides:
// it reports the end of the attempt, waits for the backoff, opens the next attempt, sends it what is in the log, and runs the operation
// again (stream_retry.go). Other operations wait until it has decided. Once a stream is committed, every operation is one call of gRPC's
// stream; only one that may be resumed opens again. A stream that has one attempt at most is committed from its beginning.
//
// RecvMsg and Header of a stream with one request, whose attempts may be slow, make them in parallel (stream_race.go). Mode OBSERVE makes no
// others, so its operations wait for gRPC only, and decide afterwards what was due meanwhile.
//
// An end is found by an operation, by the end of the call's context, or by the close of its connection. As in gRPC, an application that
// neither reads to the end nor cancels keeps what the call holds.
type stream struct {
	call

	desc      *grpc.StreamDesc
	open      grpc.Streamer
	resume    resumption                    // RecvMsg's
	encoder   encoder                       // SendMsg's
	silence   time.Duration                 // the longest wait for headers or a message, once the request is whole; 0: no limit
	committed atomic.Pointer[streamAttempt] // all operations go to it, also after the end; nil: open, deciding, or over without an answer

	mu        lock      // guards all below, and the engine; nothing waits while it is held
	changed   sync.Cond // broadcast when a goroutine has decided, and when one has received
	deciding  bool      // one goroutine has all that mu guards, without holding it
	receiving bool      // RecvMsg is inside gRPC, and finds the end of its attempt
	newest    *streamAttempt
	log       replayLog
	whole     bool // the application has sent everything
	awaited   bool // the application has begun to wait for a response
	over      bool
	due       time.Duration // in mode OBSERVE: when ENFORCE would send the next attempt beside a slow one
	untold    bool          // over, and the caller's OnFinish and observers have to hear of it
	final     error         // once over; nil: success
	unwatch   func() bool   // stops watching the call's context; may be nil
}

// streamAttempt is one attempt of a stream.
type streamAttempt struct {
	attempt

	stream   grpc.ClientStream // nil until it is open
	resumes  bool              // its request is that for the rest of the stream: the application's is done
	answered bool              // the application has its first message: RecvMsg's, which writes it with the lock
	silent   atomic.Bool       // the server sent nothing for so long that the attempt was cancelled
}

func (r *Retrier) stream(retries grpcRetries) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (made grpc.ClientStream, err error) {
		if !r.made() {
			return open(ctx, desc, cc, method, opts...)
		}
		var c call
		c.retrier, c.cc, c.method, c.grpcRetries = r, cc, method, retries
		options := newAttemptOptions(r.observers.Load().ofCalls)
		c.readRequest("", opts, options)
		if c.flags&disabled != 0 {
			return open(ctx, desc, cc, method, opts...)
		}
		c.notifyStart(ctx)
		c.prepareContext()
		if c.single() && !c.listens() {
			made, err = openPassed(c, desc, open)
		} else {
			made, err = openStream(c, desc, open, options)
		}
		if err == nil && r.repeats != nil {
			opened := c
			made = r.repeats.Stream(opened.second, desc, open, made)
		}
		return made, err
	}
}

// single reports whether a call has at most one attempt.
func (c *call) single() bool {
	return c.options.maxAttempts < 2 || c.entry.mode == policy.ModeOff
}

// openStream opens the first attempt, or the first that can be opened.
func openStream(c call, desc *grpc.StreamDesc, open grpc.Streamer, options *attemptOptions) (grpc.ClientStream, error) {
	s := &stream{call: c, desc: desc, open: open, due: attempts.Never}
	s.changed.L = &s.mu
	s.inSequence = true
	s.resume = resumptionOf(desc, s.options.caller)
	s.silence = s.silenceLimit()
	s.encoder.measures = s.entry.mode == policy.ModeObserve
	s.log.init(s.retrier, s.options.caller, !s.encoder.measures)
	if desc.ClientStreams {
		s.warnUntimed()
	}
	s.mu.Lock()
	s.decide(func() { s.begin(options) })
	if s.isOver() {
		return nil, s.final
	}
	return s, nil
}

// begin makes the first attempt, and others if that can't be opened.
func (s *stream) begin(options *attemptOptions) {
	step := s.startEngine(s.desc, attempts.Now{At: s.start})
	s.set.Resumes = s.resume.next != nil
	if step.Over {
		s.conclude(nil)
		return
	}
	s.add(s.firstAttempt(options, s.options.forAttempt(options)))
	ended, err := s.replay(s.newest)
	if ended {
		s.attemptEnded(s.newest, err, false)
	}
	if s.over {
		return
	}
	if s.single() {
		s.committed.Store(s.newest) // nothing has to be kept
	}
	if s.ctx.Done() != nil {
		s.unwatch = context.AfterFunc(s.ctx, s.contextOver)
	}
}

// SendMsg sends a message, and keeps it for later attempts until the stream is committed.
func (s *stream) SendMsg(m any) error {
	t := s.committed.Load()
	if t == nil {
		var e encoded
		why := s.encode(m, &e) // before an inner interceptor can change m
		if why != decision.CommitUnsendable {
			return s.sendKept(m, &e, why)
		}
		t = s.commitNewest(why) // its codec may give its buffers away, so no other attempt could send it
	}
	switch {
	case t == nil:
		return s.sendEnded()
	case t.resumes:
		return nil
	}
	err := s.pass(func() error { return t.stream.SendMsg(m) })
	switch {
	case err == io.EOF:
		return err
	case err != nil:
		return s.endWith(t, err)
	case !s.desc.ClientStreams:
		s.noteWhole()
	}
	return nil
}

// encode encodes a message. Only the log keeps memory for it: a stream that is committed keeps none.
func (s *stream) encode(m any, e *encoded) decision.Commit {
	s.lock()
	s.encoder.newest = s.log.newest
	s.mu.Unlock()
	defer func() { s.encoder.newest = block{} }()
	return s.encoder.encode(m, s.log.limit, e)
}

// sendKept sends a message that is kept, unless why says that it can't be. The first attempt to which it is sent gets the application's own
// message; others get copies.
func (s *stream) sendKept(m any, e *encoded, why decision.Commit) error {
	again := false
	var failure error
	sent := s.withRetry(func(t *streamAttempt) error {
		failure = nil
		if t.resumes {
			return nil
		}
		if again && e.of != nil {
			if copied, err := e.decode(); err == nil {
				m = copied
			}
		}
		again = true
		err := t.stream.SendMsg(m)
		if err != nil && err != io.EOF { // no attempt can send it
			s.lock()
			s.commit(t, decision.CommitUnsendable)
			s.mu.Unlock()
			failure = s.endWith(t, err)
		}
		return err
	}, func(t *streamAttempt) {
		s.whole = s.whole || !s.desc.ClientStreams
		s.timeAttempts()
		switch {
		case t.resumes, s.committed.Load() != nil && (s.resume.next == nil || t.answered): // else a cut before the first message needs it
		case why != decision.CommitNone:
			s.commit(t, why)
		case !s.log.keep(e):
			s.commit(t, decision.CommitBufferFull)
		}
	})
	switch {
	case sent:
		return nil
	case failure != nil:
		return failure
	default:
		return s.sendEnded()
	}
}

// sendEnded returns the error of SendMsg after the end. As in gRPC, only a sender of many messages is told.
func (s *stream) sendEnded() error {
	if s.desc.ClientStreams {
		return io.EOF
	}
	return nil
}

// CloseSend closes the application's side of this attempt and of later ones.
func (s *stream) CloseSend() (err error) {
	if t := s.committed.Load(); t != nil {
		if t.resumes {
			return nil
		}
		err = s.pass(t.stream.CloseSend)
		s.noteWhole()
		return err
	}
	s.withRetry(func(t *streamAttempt) error {
		if !t.resumes {
			err = t.stream.CloseSend()
		}
		return nil
	}, func(*streamAttempt) {
		s.log.closed, s.whole = true, true
		s.timeAttempts()
	})
	return err
}

// RecvMsg receives a message. The first one commits the stream to its attempt.
func (s *stream) RecvMsg(m any) error {
	var kept keptReply
	for first := true; ; first = false {
		t := s.committed.Load()
		if t == nil || !t.answered {
			if first {
				kept = s.keepReply(m)
			}
			var races bool
			t, races = s.beginReceive(m)
			switch {
			case races:
				return s.receiveFirst(m, kept)
			case t == nil:
				return cmp.Or(s.final, io.EOF)
			}
		}
		if !first {
			kept.restore()
		}
		err := s.pass(func() error {
			defer s.limitSilence(t)()
			return t.stream.RecvMsg(m)
		})
		if err == nil && s.desc.ServerStreams {
			if !t.answered {
				s.decideDue()
				s.received(t)
			}
			s.resume.delivered(m)
			return nil
		}
		over, shown := s.receivedEnd(t, endOf(err))
		switch {
		case err == nil || err == io.EOF:
			return err
		case over:
			return cmp.Or(shown, io.EOF) // a later attempt may have succeeded, without a message, while it was sent the log
		}
	}
}

// receiveFirst receives the first message of a stream whose attempts may be slow.
func (s *stream) receiveFirst(m any, kept keptReply) error {
	won := false
	s.decide(func() { won = s.race(decision.CommitMessage, m, kept) })
	if !won {
		return cmp.Or(s.final, io.EOF)
	}
	s.resume.delivered(m)
	return nil
}

// Header returns the headers of the attempt, and commits the stream to it. As in gRPC, they are nil if there are none, and RecvMsg
// returns why.
func (s *stream) Header() (headers metadata.MD, err error) {
	t := s.committed.Load()
	if t == nil {
		t = s.awaitHeaders()
	}
	if t == nil {
		return headers, nil
	}
	err = s.pass(func() (err error) {
		defer s.limitSilence(t)()
		headers, err = t.stream.Header()
		return err
	})
	if headers == nil && err == nil && t.ended() {
		s.endWithoutHeaders(t)
	}
	return headers, err
}

// awaitHeaders waits for headers, and commits the stream to their attempt. It returns that, or nil if the call is over without an answer.
func (s *stream) awaitHeaders() *streamAttempt {
	s.lock()
	watched := s.beginWait()
	switch {
	case !watched:
		s.mu.Unlock()
	case s.entry.mode == policy.ModeEnforce:
		s.decide(func() { s.race(decision.CommitHeaders, nil, keptReply{}) })
		return s.committed.Load()
	default:
		s.decide(func() { s.observeRace(decision.CommitHeaders, nil) })
	}
	s.withRetry(func(t *streamAttempt) error {
		defer s.limitSilence(t)()
		headers, _ := t.stream.Header()
		if headers == nil {
			return io.EOF
		}
		s.decideDue()
		return nil
	}, func(t *streamAttempt) { s.commit(t, decision.CommitHeaders) })
	return s.committed.Load()
}

// Context commits the stream, as in gRPC, and returns the context of the attempt.
func (s *stream) Context() context.Context {
	t := s.committed.Load()
	if t == nil {
		t = s.commitNewest(decision.CommitContext)
	}
	if t == nil { // over, and the last attempt has no stream
		return s.newest.ctx
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the call's response; nil before the end.
func (s *stream) Trailer() metadata.MD {
	over := s.isOver()
	if t := s.committed.Load(); over && t != nil {
		return t.stream.Trailer()
	}
	return nil
}

// pass calls gRPC's stream for the application. If an inner interceptor panics, what the call holds is released on the way up.
func (s *stream) pass(f func() error) error {
	returned := false
	defer func() {
		if !returned {
			s.lock()
			s.decide(s.abort)
		}
	}()
	err := f()
	returned = true
	return err
}

// endOf returns the end of an attempt whose RecvMsg has returned err: nil is success.
func endOf(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
