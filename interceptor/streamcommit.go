// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// commit makes t the only attempt of the call: no other follows, and nothing need be kept. It reports
// false if t has just been given up for another one. The first reason why stays. It requires mu.
func (s *stream) commit(t *try, why policy.Commit) bool {
	if s.committed {
		return true
	}
	if !t.watch.disarm() {
		return false
	}
	s.committed, s.state.Committed = true, why
	s.gates.giveBack() // what was decided about a slow attempt: it is the answer now
	if why == policy.CommitMessage || why == policy.CommitHeaders {
		s.answered = budget.Now() // else the end of the stream is the first that is known of an answer
	}
	if !s.replaying {
		s.replay.release()
	}
	s.handOver(t)
	s.tell()
	return true
}

// handOver lets the application and the running attempt deal with each other without asking, when
// nothing is left to replay nor to receive from here. It requires mu.
func (s *stream) handOver(t *try) {
	switch {
	case s.done || s.replaying || s.early != nil || t.hearing:
	case s.committed:
		s.direct.Store(t)
	default:
		s.kept.Store(t)
	}
}

// pin commits the call to an attempt for the given reason, whatever becomes of it, and returns it.
func (s *stream) pin(why policy.Commit) *try {
	for {
		s.mu.Lock()
		s.choose(why)
		for s.led && !s.done {
			s.wait()
		}
		t := s.running
		pinned := s.done || s.commit(t, why)
		s.mu.Unlock()
		if pinned {
			return t
		}
		_ = s.recover(t)
	}
}

// ended runs when gRPC has ended an attempt, in any goroutine: the only word of a stream whose
// application cancels it, or closes the connection, and never calls again. An attempt that was given
// up for another is followed by it now, unless the receiver is there to see to it.
func (s *stream) ended(t *try) {
	s.mu.Lock()
	mine := s.running == t && !s.led && !s.done
	over := mine && (s.ctx.Err() != nil || closed(s.cc))
	givenUp := mine && !over && !s.receiving && !t.watch.disarm()
	s.led = s.led || over || givenUp
	s.mu.Unlock()
	switch {
	case givenUp:
		go func() { _ = s.lead(t, errGivenUp) }()
		return
	case !over:
		return
	}
	err := s.ctx.Err()
	st := status.FromContextError(err)
	if err == nil {
		st = status.New(codes.Canceled, "grpc: the client connection is closing")
	}
	_ = s.lead(t, st.Err())
}

// finish ends the call with the answer of t: err is nil or io.EOF after success. Only the first end
// counts; it returns what RecvMsg is to return from now on.
func (s *stream) finish(t *try, err error) error {
	s.mu.Lock()
	for (s.led || s.contested()) && !s.done {
		s.wait()
	}
	if s.done {
		defer s.mu.Unlock()
		return s.final
	}
	s.led = true
	s.mu.Unlock()
	if err != nil && err != io.EOF { //nolint:errorlint // gRPC returns it bare
		return s.lead(t, err)
	}
	t.watch.disarm()
	s.oldAttempt = t.oldAttempt
	s.succeed(t.place(PlaceWon))
	s.close(t, io.EOF)
	return io.EOF
}

// close lets go of everything that the call holds; t was its last attempt.
func (s *stream) close(t *try, final error) {
	t.cancel()
	s.mu.Lock()
	s.quiet()
	s.done, s.led, s.final = true, false, final
	s.running, s.replaying = t, false
	s.replay.release()
	s.tell()
	s.mu.Unlock()
	s.release()
}
