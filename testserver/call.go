// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// call is one running attempt.
type call struct {
	stream      grpc.ServerStream
	conn        *connection
	record      *record
	attempt     *Attempt
	k           int  // number of previous attempts in its script
	seen        bool // the attempt is recorded or observed
	cancelled   bool
	streamed    bool     // by a Stream: only its function receives and sends
	unread      [][]byte // the first message, if it was read ahead
	begun       bool     // a message was read
	halfClosed  bool
	headersSent bool // headers were sent
	flushes     bool // wait for sends to go out, because the connection may be dropped
}

// maxName bounds the names of methods that are kept, in bytes.
const maxName = 256

// handle serves all calls of methods that are not registered.
func (s *Server) handle(_ any, stream grpc.ServerStream) error {
	c := &call{stream: stream, record: &s.record, attempt: &Attempt{}}
	c.attempt.Method, _ = grpc.MethodFromServerStream(stream)
	c.attempt.Method = strings.Clone(c.attempt.Method[:min(len(c.attempt.Method), maxName)])
	c.conn = connectionOf(c.stream.Context())
	if c.conn == nil {
		return status.Error(codes.Internal, "testserver: the server's credentials hide the connection")
	}
	c.attempt.Conn = c.conn.id
	step := s.begin(c)
	s.notify(c.attempt)
	err := c.run(step)
	s.record.update(func() {
		c.attempt.End, c.attempt.Code, c.attempt.Cancelled = time.Now(), status.Code(err), c.cancelled
	})
	s.notify(c.attempt)
	return err
}

// begin records a call, and returns its step.
func (s *Server) begin(c *call) (step Step) {
	s.begins.RLock()
	defer s.begins.RUnlock()
	step, c.k = s.scripts.next(c.attempt.Method)
	c.seen = s.record.keep != 0 || step.picks() || len(s.observe) > 0
	if c.seen {
		c.attempt.Metadata, _ = metadata.FromIncomingContext(c.stream.Context())
	}
	deadline, _ := c.stream.Context().Deadline()
	s.record.begin(c.attempt, deadline)
	return step
}

// run carries out a step.
func (c *call) run(s Step) error {
	c.flushes = s.drops()
	if err := c.open(s); err != nil {
		return c.ended(err)
	}
	if s.serve != nil {
		if err := s.serve(servedStream{c.stream, c}); err != nil {
			return c.ended(err)
		}
	}
	if err := c.sendAll(s.replies); err != nil {
		return c.ended(err)
	}
	if s.then != nil {
		return c.run(*s.then)
	}
	return c.finish(s)
}

// open runs the part of a step before its function and its messages.
func (c *call) open(s Step) error {
	if err := c.first(s); err != nil {
		return err
	}
	c.streamed = c.streamed || s.serve != nil || s.then != nil
	if len(s.trailer) > 0 {
		c.stream.SetTrailer(s.trailer)
	}
	if s.before != nil {
		if err := s.before(c.stream.Context()); err != nil {
			return err
		}
	}
	if s.header != nil {
		if err := c.sendHeader(s.header); err != nil {
			return err
		}
	}
	return c.wait(s.delay)
}

func (c *call) finish(s Step) error {
	switch s.end {
	case endOK:
		if s.replies != nil || c.streamed {
			return nil
		}
		return c.ended(c.send([]byte{}))
	case endHang:
		<-c.stream.Context().Done()
		return c.ended(c.stream.Context().Err())
	case endDrop:
		_ = c.conn.Close()
		return status.Error(codes.Unavailable, "testserver: connection dropped")
	case endCut:
		return c.cut()
	case endPick:
		return c.run(s.pick(c))
	default:
		return s.status.Err()
	}
}

func (c *call) wait(d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.stream.Context().Done():
		return c.stream.Context().Err()
	}
}

// ended converts an error caused by the client's cancellation or deadline to the matching
// status, and returns others unchanged.
func (c *call) ended(err error) error {
	if err == nil || c.stream.Context().Err() == nil {
		return err
	}
	c.cancelled = true
	err = c.stream.Context().Err()
	if deadline, limited := c.stream.Context().Deadline(); limited && !time.Now().Before(deadline) {
		err = context.DeadlineExceeded // gRPC's timer may cancel the context a moment before its deadline ends it
	}
	return status.FromContextError(err).Err()
}
