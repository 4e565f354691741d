// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
)

// hear waits for the answer of an attempt: its first message, or headers if the application has asked for
// them, or its end.
func (s *stream) hear(t *try) {
	defer s.catch(t)
	md, err := t.stream.Header()
	if md != nil && err == nil && s.headed(t, md) {
		return
	}
	m := new(encoded)
	err = t.stream.RecvMsg(m)
	s.mu.Lock()
	switch {
	case s.serves(t) && (s.committed || err == nil || err == io.EOF): //nolint:errorlint // gRPC returns it bare
		s.answer(t, m, err)
	case err == nil:
		s.mu.Unlock()
		m.data.Free()
		_ = s.fall(t, s.drain(t))
	default:
		s.mu.Unlock()
		_ = s.fall(t, err)
	}
}

// headed takes in the headers of an attempt. It reports whether the application goes on with it by itself.
func (s *stream) headed(t *try, headers metadata.MD) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.headers = headers
	switch {
	case !s.serves(t):
		return false
	case s.committed:
		t.hearing = false
		s.handOver(t)
		s.tell()
		return true
	case s.race.asked:
		t.hearing = false
		s.race.record(&t.lane)
		s.win(t, policy.CommitHeaders)
		return true
	}
	return false
}

// ask commits the call to the oldest attempt that has brought headers, now or when the first one has.
// It requires mu.
func (s *stream) ask() {
	if !s.racing() {
		return
	}
	s.race.asked = true
	for _, l := range s.race.running {
		if l.try.headers != nil && !s.race.over {
			s.win(l.try, policy.CommitHeaders)
			return
		}
	}
}

// answer takes what an attempt has brought for the call's answer: a message, or, with io.EOF, or an error if
// the application has committed to it before, its end. It requires mu, and gives it up.
func (s *stream) answer(t *try, m *encoded, err error) {
	if err == nil {
		s.early, t.hearing = m, false
	}
	if !s.committed {
		s.race.record(&t.lane)
		s.win(t, policy.CommitMessage)
	}
	s.tell()
	s.mu.Unlock()
	if err != nil || !s.desc.ServerStreams {
		_ = s.finish(t, err)
	}
}

// drain waits for the end of an attempt that was cancelled.
func (s *stream) drain(t *try) error {
	for s.desc.ServerStreams {
		m := new(encoded)
		err := t.stream.RecvMsg(m)
		switch {
		case err == io.EOF: //nolint:errorlint // gRPC returns it bare
			return nil
		case err != nil:
			return err
		}
		m.data.Free()
	}
	return nil
}
