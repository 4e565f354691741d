// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/stagger-go/stagger/policy"
)

// unblocked is how much gRPC takes of a stream's messages before it lets their sender wait, in bytes: what
// comes when less was sent is taken whole. It is a constant of gRPC's transport.
const unblocked = 64 << 10

// alone returns the attempt to which the application can send by itself, without waiting; nil if there is
// none. The attempt is the application's then, until handBack.
func (r *streamRace) alone(kept *replay) *try {
	if len(r.running) != 1 || r.over || kept.bytes >= unblocked || kept.closed {
		return nil
	}
	t := r.running[0].try
	if !t.opened || t.sending || t.deaf || t.sent < kept.length {
		return nil
	}
	t.sending = true
	return t
}

// handBack takes back an attempt that the application has sent something, with err.
func (s *stream) handBack(t *try, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.sending, t.sent, t.deaf = false, s.replay.length, t.deaf || err != nil
	s.caughtUp(t)
	if s.racing() {
		s.spread()
	}
}

// post keeps a message, for all attempts to be sent. It reports false if it cannot be kept, and the call is
// committed to an attempt that is to be sent it.
func (s *stream) post(m any) bool {
	var data mem.BufferSlice
	why := policy.CommitPreparedMessage
	if _, prepared := m.(*grpc.PreparedMsg); !prepared {
		if data, why = s.encode(m, nil); data != nil {
			defer data.Free() // the buffer has a reference of its own
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.racing():
		return false
	case s.replay.closed, s.resumption.begun:
		why = policy.CommitUnsendable // gRPC says so
	case why == policy.CommitNone && !s.replay.add(data):
		why = policy.CommitBufferFull
	}
	if why != policy.CommitNone {
		s.choose(why)
		return false
	}
	s.spread()
	return true
}

// spread has those attempts sent to that are behind. It requires mu.
func (s *stream) spread() {
	for _, l := range s.race.running {
		if t := l.try; t.opened && !t.sending && s.behind(t) {
			t.sending = true
			s.race.senders++
			go s.resend(t)
		}
	}
}

// behind reports whether something is left to send to an attempt, or is being sent. It requires mu.
func (s *stream) behind(t *try) bool {
	return t.sending || !t.deaf && (t.sent < s.replay.length || s.replay.closed && !t.closed)
}

// serves reports whether an attempt runs that may still be the call's. It requires mu.
func (s *stream) serves(t *try) bool {
	if s.racing() {
		return !s.race.over && slices.Contains(s.race.running, &t.lane)
	}
	return s.running == t && !s.done
}

// settleRace follows t, which was sent a message with err that is not kept: for that reason the call goes on
// with t, unless t has ended. It requires mu, and gives it up.
func (s *stream) settleRace(t *try, err error, why policy.Commit) (_ error, over bool) { //nolint:revive // the error is SendMsg's
	switch {
	case err != nil && err != io.EOF: //nolint:errorlint // gRPC returns it bare
		return s.unsendable(t, err), true
	case err == nil && s.serves(t):
		s.win(t, why)
	}
	over = s.running == t
	s.mu.Unlock()
	return nil, over
}

// unsendable ends a call with the error of gRPC, which could not send a message to t for a reason on this
// side: nil if t does not run any more, and others are sent it. It requires mu, and gives it up.
func (s *stream) unsendable(t *try, err error) error {
	if !s.serves(t) {
		s.mu.Unlock()
		return nil
	}
	s.state.Committed = policy.CommitUnsendable // no other attempt could send it
	s.mu.Unlock()
	_ = s.fall(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.racing() {
		s.wait()
	}
	return s.final // nil if another attempt has won meanwhile, and is sent it
}

// closeRace closes the application's side of all attempts. It requires mu, and gives it up.
func (s *stream) closeRace() error {
	t := s.race.alone(&s.replay)
	s.replay.closed = true
	if t == nil {
		s.spread()
		s.mu.Unlock()
		return nil
	}
	t.closed = true
	s.mu.Unlock()
	err := t.stream.CloseSend()
	s.handBack(t, nil)
	return err
}
