// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind. It works as gRPC's own retries do: a log of what was sent, one lock, one attempt at a time.
//
// An operation of the application runs on the newest attempt, without the lock. If it fails, its goroutine takes the lock, reports
// the end of the attempt, waits for the backoff, opens the next attempt, sends it what is in the log, and runs the operation again
// (stream_retry.go). The lock is held all that time, so other operations wait. What the application sees of an attempt commits the call
// to it: from then on, every operation is one call of gRPC's stream.
//
// RecvMsg and Header of a stream with one request, whose attempts may be slow, make them beside each other (stream_race.go).
//
// The end of a call is found by an operation, or by the end of the call's context. As in gRPC, an application that neither reads to the
// end nor cancels keeps what the call holds.
type stream struct {
	call

	desc    *grpc.StreamDesc
	open    grpc.Streamer
	resume  resumption                    // RecvMsg's
	encoder encoder                       // SendMsg's
	direct  atomic.Pointer[streamAttempt] // the call is committed to it, or over with it

	mu      gate             // guards the engine, and all below
	made    []*streamAttempt // by number; the last one is the newest; nil: before a resumption
	log     replayLog
	over    bool
	untold  bool        // over, and the caller's OnFinish and observers have to hear of it
	final   error       // nil: success
	shown   error       // the same, or gRPC's later error for the application
	unwatch func() bool // stops watching the call's context; may be nil
}

// streamAttempt is one attempt of a stream.
type streamAttempt struct {
	attempt

	stream    grpc.ClientStream // nil until it is open
	receiving gate              // held in RecvMsg until the call is committed
	heard     bool              // a message was received: its receiver's
	spoiled   bool              // the same; a codec that adds to what it finds may have put a reply into the application's message
}

// gate is a lock that may be held while its owner sleeps: in a synctest bubble, time goes on for those who wait for it.
type gate chan struct{}

func newGate() gate    { return make(gate, 1) }
func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

func (r *Retrier) stream(retries grpcRetries) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (made grpc.ClientStream, err error) {
		var c call
		c.retrier, c.cc, c.method, c.grpcRetries = r, cc, method, retries
		options := newAttemptOptions()
		c.readRequest(opts, options)
		if c.flags&disabled != 0 {
			return open(ctx, desc, cc, method, opts...)
		}
		c.announce(ctx)
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
	s := &stream{call: c, desc: desc, open: open, mu: newGate()}
	s.inSequence = true
	s.resume = resumptionOf(desc, s.options.caller)
	s.log.init(s.retrier, s.options.caller)
	over := false
	s.locked(func() {
		s.begin(options)
		over = s.over
	})
	if over {
		return nil, s.final
	}
	return s, nil
}

// begin makes the first attempt. The lock must be held.
func (s *stream) begin(options *attemptOptions) {
	if step := s.startEngine(true, attempts.Now{At: s.start}); step.Over {
		s.conclude()
		return
	}
	t := s.add(s.firstAttempt(options, s.start))
	if err := s.replay(t); err != nil {
		s.attemptEnded(t, err)
	}
	if s.over {
		return
	}
	if s.single() {
		s.direct.Store(s.newest()) // nothing has to be kept
	}
	if s.ctx.Done() != nil {
		s.unwatch = context.AfterFunc(s.ctx, s.contextOver)
	}
}

// SendMsg sends a message, and keeps it for later attempts until the call is committed. The first attempt to which it is sent gets the
// application's own message; others get copies.
func (s *stream) SendMsg(m any) error {
	if t := s.direct.Load(); t != nil {
		err := s.pass(func() error { return t.stream.SendMsg(m) })
		if err == nil || err == io.EOF {
			return err
		}
		return s.endWith(t, err)
	}
	var e encoded
	why := s.encoder.encode(m, s.log.limit, &e) // before an inner interceptor can change m
	if why == decision.CommitUnsendable {       // its codec may give its buffers away, so no other attempt could send it
		s.locked(func() { s.commit(s.newest(), why) })
		if s.direct.Load() != nil {
			return s.SendMsg(m)
		}
		return io.EOF
	}
	var sentTo, failed *streamAttempt
	var failure error
	sent := s.withRetry(func(t *streamAttempt) error {
		if sentTo != nil && sentTo != t && e.of != nil {
			if again, err := e.decode(); err == nil {
				m = again
			}
		}
		sentTo = t
		err := t.stream.SendMsg(m)
		if err == io.EOF {
			return errRefused
		}
		if err != nil {
			failed, failure = t, err // no attempt can send this message
		}
		return nil
	}, func(t *streamAttempt) {
		switch {
		case s.over:
		case t == failed:
			s.commit(t, decision.CommitUnsendable)
			s.attemptEnded(t, failure)
		case s.direct.Load() != nil:
		case why != decision.CommitNone:
			s.commit(t, why)
		case !s.log.keep(&e):
			s.commit(t, decision.CommitBufferFull)
		}
	})
	switch {
	case failure != nil && sentTo == failed:
		return s.endWith(failed, failure)
	case !sent && s.desc.ClientStreams:
		return io.EOF
	default:
		return nil // as in gRPC, only a sender of many messages is told
	}
}

// CloseSend closes the application's side of this attempt and of later ones.
func (s *stream) CloseSend() (err error) {
	if t := s.direct.Load(); t != nil {
		return s.pass(t.stream.CloseSend)
	}
	s.withRetry(func(t *streamAttempt) error {
		err = t.stream.CloseSend()
		return nil
	}, func(*streamAttempt) { s.log.closed = true })
	return err
}

// RecvMsg receives a message. The first one commits the call to its attempt.
func (s *stream) RecvMsg(m any) (err error) {
	for {
		t := s.direct.Load()
		if t == nil {
			received := false
			s.locked(func() {
				received = s.receiveFirst(m)
				err = cmp.Or(s.final, io.EOF)
			})
			if !received {
				return err
			}
			s.resume.delivered(m)
			return nil
		}
		if !t.heard && !s.desc.ClientStreams {
			s.locked(func() { s.engine.Requested(t.number, attempts.Now{At: clock.Now()}) })
		}
		err = s.pass(func() error { return t.stream.RecvMsg(m) })
		if err == nil && s.desc.ServerStreams {
			s.hear(t)
			s.resume.delivered(m)
			return nil
		}
		resumed := false
		s.locked(func() {
			if !s.over {
				s.attemptEnded(t, err)
				resumed = !s.over
			}
		})
		if err == nil || err == io.EOF {
			return err
		}
		if !resumed {
			return s.result(err)
		}
	}
}

// receiveFirst receives the first message, and reports whether there is one: else the call is over. The lock must be held.
func (s *stream) receiveFirst(m any) bool {
	if s.beginWait() {
		return s.race(decision.CommitMessage, m)
	}
	return s.retry(func(t *streamAttempt) error {
		t.receiving.Lock()
		defer t.receiving.Unlock()
		err := t.stream.RecvMsg(m)
		if err != nil && !s.desc.ServerStreams && !s.usesGRPCsCodec() {
			headers, _ := t.stream.Header()
			t.spoiled = headers != nil
		}
		return err
	}, func(t *streamAttempt) {
		switch {
		case s.over: // its context has ended meanwhile
			return
		case !s.desc.ServerStreams:
			s.attemptEnded(t, nil)
			return
		}
		s.commit(t, decision.CommitMessage)
		t.heard = true
		s.engine.Heard(t.number, attempts.Now{At: clock.Now()})
	})
}

// hear reports the first message of a stream that something else has committed to its attempt.
func (s *stream) hear(t *streamAttempt) {
	if t.heard {
		return
	}
	t.heard = true
	s.locked(func() { s.engine.Heard(t.number, attempts.Now{At: clock.Now()}) })
}

// Header returns the headers of the attempt, and commits the call to it. As in gRPC, they are nil if there are none, and RecvMsg
// returns why.
func (s *stream) Header() (headers metadata.MD, err error) {
	t := s.direct.Load()
	if t == nil {
		s.locked(func() {
			if s.beginWait() {
				s.race(decision.CommitHeaders, nil)
				return
			}
			s.retry(func(t *streamAttempt) error {
				if headers, _ := t.stream.Header(); headers == nil {
					return errRefused
				}
				return nil
			}, func(t *streamAttempt) { s.commit(t, decision.CommitHeaders) })
		})
		if t = s.direct.Load(); t == nil {
			return nil, nil
		}
	}
	err = s.pass(func() (err error) {
		headers, err = t.stream.Header()
		return err
	})
	if end := t.end.Load(); headers == nil && err == nil && end != nil {
		_ = s.endWith(t, *end) // as in gRPC
	}
	return headers, err
}

// Context commits the call, as in gRPC, and returns the context of the attempt.
func (s *stream) Context() context.Context {
	t := s.direct.Load()
	if t == nil {
		s.locked(func() {
			if !s.over {
				s.commit(s.newest(), decision.CommitContext)
			}
		})
		if t = s.direct.Load(); t == nil {
			return s.ctx
		}
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the call's response; nil before the end.
func (s *stream) Trailer() metadata.MD {
	over := false
	s.locked(func() { over = s.over })
	if t := s.direct.Load(); over && t != nil {
		return t.stream.Trailer()
	}
	return nil
}

// pass calls gRPC's stream for the application. If an inner interceptor panics, the call is over.
func (s *stream) pass(f func() error) error {
	returned := false
	defer func() {
		if !returned {
			s.locked(s.abort)
		}
	}()
	err := f()
	returned = true
	return err
}

// endWith ends the call with the error of its attempt, unless it is over, and returns what the application gets.
func (s *stream) endWith(t *streamAttempt, err error) (final error) {
	s.locked(func() {
		if !s.over {
			s.attemptEnded(t, err)
		}
		final = s.final
	})
	return amended(final, err)
}

// result returns what RecvMsg returns of a call that is over, if gRPC has returned err: that, with the details of the call's error, if a
// server has sent it.
func (s *stream) result(err error) (final error) {
	if err == io.EOF {
		return err
	}
	s.locked(func() {
		if s.shown == nil || isResponse(err) {
			s.shown = amended(s.shown, err)
		}
		final = s.shown
	})
	return final
}

// errRefused says that an attempt has ended, and RecvMsg says how.
var errRefused = errors.New("the attempt has ended")

// endOf returns the end of an attempt whose RecvMsg has returned err: nil is success.
func endOf(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
