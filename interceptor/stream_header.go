// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
)

// Header returns the headers of the attempt, to which it commits the call; nil if it ended without.
func (s *stream) Header() (metadata.MD, error) {
	t, headers := s.awaitHeader()
	if headers == nil && t != nil && t.stream != nil {
		return s.headerOf(t)
	}
	return headers, nil // nil as in gRPC: RecvMsg says why
}

// awaitHeader waits for the attempt that the call is committed to; nil if the call is over without any. Its
// headers come with it if somebody reads the attempt, whom the application must not ask beside.
func (s *stream) awaitHeader() (*streamAttempt, metadata.MD) {
	s.mu.Lock()
	defer s.unlock()
	s.asking++
	defer func() { s.asking-- }()
	for !s.done {
		for _, t := range s.running {
			if t.open() && t.headers != nil {
				s.commit(t, policy.CommitHeaders)
			}
		}
		switch t := s.chosen; {
		case t == nil:
		case t.reading && t.headers != nil:
			return t, t.headers
		case !t.reading:
			return t, nil
		}
		switch t := s.unread(); {
		case t == nil:
			s.wait()
		case t.headed:
			s.commit(t, policy.CommitHeaders) // it says that there are none
		default:
			t.reading = true
			s.outside(func() { s.read(t) })
		}
	}
	return s.answer, nil
}

// readHeader waits for the headers of an attempt, or its end. Who calls it has set reading.
func (s *stream) readHeader(t *streamAttempt) {
	header, err := s.headerOf(t)
	s.mu.Lock()
	defer s.unlock()
	t.headed = true
	if err == nil && header != nil {
		t.headers = header
		if s.asking > 0 {
			s.commit(t, policy.CommitHeaders)
		}
	}
	s.changed.Broadcast()
}

func (s *stream) headerOf(t *streamAttempt) (metadata.MD, error) {
	returned := false
	defer s.guard(t, &returned)
	headers, err := t.stream.Header()
	returned = true
	return headers, err
}
