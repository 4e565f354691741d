// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/decision"
)

// streamAttempt is one attempt of a stream. The driver's lock guards all of it but what is said to be its maker's. stream is set once.
type streamAttempt struct {
	attempt

	of      *stream
	maker   maker
	stream  grpc.ClientStream // nil until it is open
	headers metadata.MD       // received; nil: none yet
	heard   bool              // its first message was received

	sending sending
	given   int   // kept messages that were sent to it, or are being sent
	closed  bool  // CloseSend was called, or is being called
	failure error // of a message that could not be sent; nil: none

	received    received // its maker's
	finished    error    // OnFinish's error, io.EOF after a success; nil: gRPC has not called it
	serverError error    // which it has ended with; nil: none
}

// maker is who makes an attempt, and reports its end. If nobody does, the one who comes first goes on with it, or reports its end: the
// application's next call, gRPC's OnFinish, or the end of the context.
//
//	        ┌──────────► makerCall ───────┐
//	makerNone ◄─ rests ──┘                ├── reports its end ──► makerOver
//	   │    └──────────► makerGoroutine ──┘                           ▲
//	   ├── a call of the application finds its end ───────────────────┘
//	   └── OnFinish or the end of the context reports its end ──► makerUnfound
//	                   makerGoroutine, while nobody waits ──┘
type maker uint8

const (
	makerNone      maker = iota
	makerCall            // a call of the application's is inside of it, or about to be
	makerGoroutine       // a goroutine of ours is
	makerOver            // its end is reported, or is being reported
	makerUnfound         // the same, and no call of the application has found it
)

// received is what an attempt has received for the RecvMsg that waits.
//
//	receivedNothing ── a message ──► receivedMessage ── it commits the call, or another attempt has ──► receivedNothing
//	       └── a part of one, and an error ──► receivedPart
type received uint8

const (
	receivedNothing received = iota
	receivedMessage
	receivedPart // in the application's message, and it can't be undone
)

// sending is who may send to an attempt that is open.
//
//	sendsFreely ── it lacks kept messages ──► sendsKept
//	     ▲ │                                    │ │
//	     │ └── it takes no more ─► sendsNoMore ◄┘ │
//	     └───────── it has everything ────────────┘
type sending uint8

const (
	sendsFreely sending = iota // the application's SendMsg and CloseSend
	sendsKept                  // a goroutine of ours, or its maker
	sendsNoMore                // nobody: gRPC has returned io.EOF, or a message could not be sent
)

// over reports whether the attempt's end is reported, or is being reported. The lock must be held.
func (t *streamAttempt) over() bool { return t.maker >= makerOver }

// setOver records that the attempt's end is being reported. The lock must be held.
func (t *streamAttempt) setOver() { t.maker = max(t.maker, makerOver) }

// newStreamAttempt makes an attempt one of the stream. The lock must be held.
func (s *stream) newStreamAttempt(a attempt) *streamAttempt {
	t := &streamAttempt{attempt: a, of: s}
	t.ofStream = t
	t.onEnd = t
	t.ctx, t.cancel = context.WithCancel(t.ctx)
	return t
}

// openAttempt opens an attempt.
func (s *stream) openAttempt(t *streamAttempt) error {
	made, err := s.open(t.ctx, s.desc, s.cc, s.method, t.options...)
	if err != nil {
		return err
	}
	s.lockedOnly(func() {
		t.stream = made
		if !t.cutOff() { // an inner interceptor has opened another stream before
			t.finished = nil
		}
		s.driver.changed.Broadcast()
	})
	return nil
}

// lacks reports whether an attempt lacks kept messages, or the close. The lock must be held.
func (s *stream) lacks(t *streamAttempt) bool {
	return t.given < s.request.messages || s.request.closed() && !t.closed
}

// replayBeside sends an attempt what was kept, in a goroutine of its own.
func (s *stream) replayBeside(t *streamAttempt) {
	returned := false
	defer func() {
		if !returned {
			s.goroutinePanicked(&t.attempt, recover())
		}
	}()
	s.replayTo(t)
	returned = true
}

// replayTo sends an attempt what was kept, until it has everything.
func (s *stream) replayTo(t *streamAttempt) {
	for {
		message, closes, more := s.nextKept(t)
		var err error
		switch {
		case !more:
			return
		case closes:
			err = t.stream.CloseSend()
		default:
			err = s.sendCopy(t, message)
		}
		if err != nil {
			s.lockedOnly(func() { s.sendFailed(t, err) })
			if err != io.EOF {
				t.endContext() // whoever receives from it ends it with this error
			}
			return
		}
	}
}

// sendCopy sends a copy of a kept message. If there can be none, the call ends with the last error of a server.
func (s *stream) sendCopy(t *streamAttempt, message encoded) error {
	m, err := message.decode()
	if err == nil {
		return t.stream.SendMsg(m)
	}
	s.locked(func() {
		for _, a := range s.driver.attempts {
			other := a.ofStream
			if other != t && !other.over() && other.stream != nil && other.sending == sendsFreely && !s.lacks(other) {
				s.commit(other, decision.CommitUnsendable) // it has this message
			}
		}
		if s.commit(t, decision.CommitUnsendable) && s.lastFailed != nil && s.request.state != requestReplaced {
			err = s.lastFailed.serverError
			s.outcome.instead = s.lastFailed
		}
	})
	return err
}

// nextKept returns the next message that an attempt lacks, or that it is to be closed, or that there is no more.
func (s *stream) nextKept(t *streamAttempt) (m encoded, closes, more bool) {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	switch {
	case t.over(), s.cancelled(t), s.isOver(): // nothing is kept for it any more
		t.sending = sendsNoMore
	case t.given < s.request.messages:
		m = s.request.buffer.message(t.given)
		t.given++
		if !s.desc.ClientStreams {
			s.requested(t)
		}
		return m, false, true
	case s.request.closed() && !t.closed:
		t.closed = true
		s.requested(t)
		return m, true, true
	default:
		t.sending = sendsFreely
		s.passThrough()
	}
	s.driver.changed.Broadcast()
	return m, false, false
}

// sendFailed records that t takes no more messages: it has ended, or err is another error than io.EOF. The lock must be held.
func (s *stream) sendFailed(t *streamAttempt, err error) {
	t.sending = sendsNoMore
	if err != io.EOF && t.failure == nil && !t.over() {
		t.failure = err
	}
	s.driver.changed.Broadcast()
}

// askHeaders waits for the headers of an attempt. If gRPC has ended it without any, no message can arrive, and RecvMsg says how it has
// ended: gRPC's Header may return before gRPC knows the status, and then tells OnFinish of a success. An inner interceptor that answers
// without gRPC may have messages and no headers.
func (s *stream) askHeaders(t *streamAttempt) (ended bool, err error) {
	headers, err := t.stream.Header()
	if headers == nil && err == nil && !t.ended() {
		headers = metadata.MD{}
	}
	if headers != nil {
		s.lockedOnly(func() { t.headers = headers })
		return false, nil
	}
	if err == nil {
		err = t.stream.RecvMsg(new(emptypb.Empty))
		if err == nil { // a message came just before the context ended
			err = status.FromContextError(context.Canceled).Err()
		}
	}
	if err == io.EOF {
		return true, nil
	}
	return true, s.causeOf(t, err)
}

// receive receives a message: into the application's in its own goroutine, into a new one in one of ours.
func (s *stream) receive(t *streamAttempt) (ended bool, err error) {
	d := &s.drive // it changes when no attempt is made
	if t.maker == makerGoroutine {
		t.reply, t.ownReply = d.replies.newMessage(), true
		err = t.stream.RecvMsg(t.reply)
	} else {
		err = s.receiveInto(t, d)
	}
	switch {
	case err == io.EOF:
		return true, nil
	case err != nil:
		return true, s.causeOf(t, err)
	}
	t.received = receivedMessage
	return !s.desc.ServerStreams, nil
}

// receiveInto receives into the application's message, as that was when the application called RecvMsg.
func (s *stream) receiveInto(t *streamAttempt, d *drive) error {
	if d.used {
		d.before.restore()
	}
	d.used = true
	if !d.before.partly || s.codec == nil {
		return t.stream.RecvMsg(d.message)
	}
	s.codec.watch(d.message)
	err := t.stream.RecvMsg(d.message)
	if err != nil && s.codec.received.Load() {
		t.received = receivedPart
	}
	return err
}

// causeOf returns the error of an attempt that has returned err: that of a message that could not be sent, if that has ended it.
func (s *stream) causeOf(t *streamAttempt, err error) error {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	if t.failure != nil {
		return t.failure
	}
	return err
}

// refuses reports whether an attempt takes no more messages.
func (s *stream) refuses(t *streamAttempt) bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return t.sending == sendsNoMore
}

// errGivenUp is the error of an attempt that was replaced by another, or is no longer needed.
var errGivenUp = status.Error(codes.Canceled, "given up for another attempt")
