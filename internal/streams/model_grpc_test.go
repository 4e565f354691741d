// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The errors of the model's attempts.
var (
	errContext     = status.Error(codes.Canceled, "context canceled")
	errUnavailable = status.Error(codes.Unavailable, "unavailable")
	errFatal       = status.Error(codes.InvalidArgument, "invalid")
	errTooLarge    = status.Error(codes.Unavailable, "message too large") // a code that the policies retry
	errWrapped     = status.Error(codes.Internal, "an inner interceptor's word")
	errNoReply     = status.Error(codes.Internal, "cardinality violation: received no response message")
	errNoCopy      = status.Error(codes.Internal, "a message cannot be made again")
	errGivenUp     = status.Error(codes.Canceled, "given up for another attempt")
)

// grpcStream is gRPC's side of an attempt.
type grpcStream struct {
	n         int
	first     int  // how many messages the application had when it was sent: a resumption continues there
	resumes   bool // it was sent the resume request
	opened    bool
	cancelled bool // its context was cancelled
	sent      []int
	stuck     bool // SendMsg waits until the server receives
	orphan    bool // it was never sent: Header and OnFinish have no error
	closed    bool // CloseSend was called
	headers   bool // have arrived
	arrived   int  // messages, including received ones
	received  int  // of those
	ended     bool // the server's end has arrived
	err       error
	taken     bool // RecvMsg has returned the end
	finished  bool // OnFinish was called, or would have been
	heard     bool // the machine knows the end
	reported  int  // reported ends
	sender    *actor
	receivers []*actor
	openers   int
	waited    time.Duration   // how long a call of the application has waited since it was sent
	asked     time.Duration   // the part of waited at which it was closed: only then can the server answer
	heardAt   []time.Duration // the part of waited since then at which the machine was told of something
	endBefore bool            // the end had arrived when the call's context ended
	before    int             // messages that had arrived when the call's context ended; -1: it has not, or another attempt is shown
}

// done reports whether the attempt's context is over.
func (m *model) done(s *grpcStream) bool { return s.cancelled || m.closed }

// active reports whether the server can still do something.
func (m *model) active(s *grpcStream) bool { return s.opened && !s.ended && !m.done(s) && !s.finished }

// serve makes the server act.
func (m *model) serve(s *grpcStream, what int) {
	switch {
	case s.stuck && what < 5:
		s.stuck = false
	case what < 2 || m.silent:
		m.note("attempt %d: headers arrive", s.n)
		s.headers = true
	case what < 5 && (m.set.ServerStreams || s.arrived == 0):
		m.note("attempt %d: message %d arrives", s.n, s.arrived)
		s.headers = true
		s.arrived++
	default:
		m.endStream(s, what)
	}
}

func (m *model) endStream(s *grpcStream, what int) {
	s.ended = true
	switch {
	case what == 7:
		s.err = errFatal
	case what > 7, !s.headers && what != 6:
		s.err = errUnavailable
	}
	m.note("attempt %d: ends with %v", s.n, status.Code(s.err))
}

// finish calls OnFinish once, in any goroutine, as gRPC does.
func (m *model) finish(s *grpcStream, err error) {
	if s.finished {
		return
	}
	s.finished = true
	if m.swallows {
		return
	}
	s.heard = true
	m.note("attempt %d: OnFinish %v", s.n, status.Code(err))
	if m.hasty() && m.call.FinishHeld(s.n, err) {
		m.checkNothingToDo("OnFinish")
		return
	}
	m.enter()
	e := m.call.Finish(s.n, err)
	m.exit()
	m.spawnReport("OnFinish", e)
}

// ready reports whether gRPC returns from an order now.
func (m *model) ready(a *actor) bool {
	s := a.stream
	switch a.order.Do {
	case Receive:
		if s.received < s.arrived && m.set.ServerStreams {
			return true
		}
		return s.ended || m.done(s) || s.finished
	case GetHeader:
		return s.headers || s.ended || m.done(s) || s.finished
	case Send:
		return !s.stuck || s.ended || m.done(s) || s.finished
	default:
		return true
	}
}

// perform carries out an order as gRPC does, and returns the result.
func (m *model) perform(a *actor) Result {
	s := a.stream
	if m.dice.one(60) {
		m.panicked = true
		return Result{Panicked: true}
	}
	switch a.order.Do {
	case Open:
		return m.open(s)
	case Send:
		return m.send(a, s)
	case Close:
		if s.closed && !a.direct {
			m.failf("1: attempt %d is closed twice", s.n)
		}
		s.closed = true
		return Result{}
	case GetHeader:
		if s.headers {
			return Result{Headers: true}
		}
		if s.orphan {
			m.finish(s, nil)
		} else {
			m.finish(s, m.endOf(s))
		}
		if a.order.Status || !a.order.Beside && s.heard {
			return m.receive(s)
		}
		return Result{}
	default:
		return m.receive(s)
	}
}

func (m *model) open(s *grpcStream) Result {
	switch {
	case m.done(s):
		m.finish(s, errContext)
		return Result{Err: errContext}
	case m.dice.one(6):
		m.finish(s, errUnavailable)
		return Result{Err: errUnavailable}
	}
	s.opened, s.stuck = true, m.dice.one(6)
	if m.dice.one(12) {
		s.orphan, s.ended, s.err = true, true, errUnavailable
	}
	return Result{}
}

// endOf returns the error with which gRPC reports the end of a stream.
func (m *model) endOf(s *grpcStream) error {
	if s.ended {
		return s.err
	}
	return errContext
}

func (m *model) send(a *actor, s *grpcStream) Result {
	id := a.id
	if a.task.Kind == Goroutine {
		if m.dice.one(40) {
			return Result{Err: errNoCopy, Unsendable: true}
		}
		id = m.bytes
	}
	if s.closed {
		m.finish(s, errFatal)
		return Result{Err: errFatal}
	}
	if s.ended || m.done(s) || s.finished {
		if !m.set.ClientStreams || m.hides {
			m.hidden = true
			return Result{}
		}
		return Result{Err: io.EOF}
	}
	if m.dice.one(40) {
		m.finish(s, errTooLarge)
		return Result{Err: errTooLarge}
	}
	s.sent = append(s.sent, id)
	m.checkSent(s)
	return Result{}
}

func (m *model) receive(s *grpcStream) Result {
	if s.received < s.arrived && (m.set.ServerStreams || s.ended && s.err == nil) {
		s.received++
		if !m.set.ServerStreams {
			s.taken = true
			m.finish(s, nil)
		}
		return Result{}
	}
	err := m.endOf(s)
	if err == nil && !m.set.ServerStreams && s.arrived == 0 {
		err = errNoReply
	}
	s.taken = true
	m.finish(s, err)
	switch {
	case err == nil:
		err = io.EOF
	case m.wraps && s.ended && err != errUnavailable:
		err = errWrapped
	}
	return Result{Err: err}
}

// checkSent checks that the messages sent to an attempt are a prefix of the application's.
func (m *model) checkSent(s *grpcStream) {
	want := m.sent
	if s.resumes {
		want = []int{requestForRest}
	}
	if len(s.sent) > len(want) || !slices.Equal(s.sent, want[:len(s.sent)]) {
		m.failf("4: attempt %d was sent %v of %v", s.n, s.sent, want)
	}
}
