// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// RecvMsg receives a message. The first one commits the call to its attempt; until then, an attempt
// that fails may be followed by another one, and the application does not notice.
func (s *stream) RecvMsg(m any) error {
	t := s.direct.Load()
	switch {
	case t == nil:
		return s.receive(m)
	case !s.through:
		return s.receiveOn(t, m)
	}
	if err := t.stream.RecvMsg(m); err != nil {
		return s.received(t, err)
	}
	return nil // the way of nearly all messages
}

// receive receives a message from whatever attempt brings one first.
func (s *stream) receive(m any) error {
	for {
		s.mu.Lock()
		for (s.led || s.running.hearing) && !s.done {
			s.wait()
		}
		if early := s.early; early != nil {
			t := s.running
			s.early = nil
			s.handOver(t)
			s.mu.Unlock()
			return s.decode(t, early, m)
		}
		if s.done {
			final := s.final
			s.mu.Unlock()
			s.rethrow()
			return final
		}
		t := s.running
		s.receiving = true
		s.mu.Unlock()
		err := t.stream.RecvMsg(m)
		if again := s.look(t, &err); again {
			if final := s.lead(t, err); final != nil {
				return final
			}
			clearReply(m)
			continue
		}
		return s.arrived(t, m, err)
	}
}

// decode decodes a message that came early. One that cannot be decoded ends the call, as in gRPC.
func (s *stream) decode(t *try, early *encoded, m any) error {
	defer early.data.Free()
	err := s.codec.Unmarshal(early.data, m)
	if err == nil {
		s.resumption.delivered(m)
		return nil
	}
	err = status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	if final := s.finish(t, err); final != io.EOF { //nolint:errorlint // gRPC returns it bare
		return final
	}
	return err
}

// look takes in what was received before the call was committed. It reports true if the attempt has
// failed and the caller is to lead on.
func (s *stream) look(t *try, err *error) (lead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receiving = false
	s.tell()
	if s.led || s.done {
		return false // the call has ended meanwhile
	}
	if *err == nil && s.desc.ServerStreams && !s.commit(t, policy.CommitMessage) {
		*err = errGivenUp // the message came too late: another attempt has its place
	}
	if *err == nil || *err == io.EOF || s.committed { //nolint:errorlint // gRPC returns it bare
		return false
	}
	s.led = true
	return true
}

// errGivenUp is what becomes of an attempt that was abandoned.
var errGivenUp = status.Error(codes.Canceled, "given up for another attempt")

// received ends the call if there is nothing more to receive.
func (s *stream) received(t *try, err error) error {
	if err == nil && s.desc.ServerStreams {
		return nil
	}
	final := s.finish(t, err)
	if err == nil {
		return nil // the one reply of a client stream
	}
	return final
}

// Header returns the headers of the attempt, to which it commits the call; nil if it ended without.
func (s *stream) Header() (metadata.MD, error) {
	for {
		s.mu.Lock()
		s.ask()
		for (s.led || s.running.hearing && s.running.headers == nil) && !s.done {
			s.wait()
		}
		t, over := s.running, s.done || s.committed
		s.heading = !over
		s.mu.Unlock()
		if t.stream == nil {
			return nil, nil //nolint:nilnil // as gRPC: RecvMsg says why
		}
		if t.headers != nil {
			return t.headers, nil
		}
		md, err := t.stream.Header()
		if over {
			return md, err
		}
		s.mu.Lock()
		s.heading = false
		s.tell()
		if s.running != t || s.led {
			s.mu.Unlock()
			continue
		}
		if md != nil && err == nil && s.commit(t, policy.CommitHeaders) {
			s.mu.Unlock()
			return md, nil
		}
		s.mu.Unlock()
		_ = s.recover(t)
	}
}
