// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// call is one attempt that is being served.
type call struct {
	stream    grpc.ServerStream
	ctx       context.Context //nolint:containedctx // the stream's own
	conn      *connection
	attempt   *Attempt
	k         int // attempts that came before it in its script
	cancelled bool
}

// handle serves every call of every method that is not registered.
func (s *Server) handle(_ any, stream grpc.ServerStream) error {
	c := &call{stream: stream, ctx: stream.Context(), attempt: &Attempt{}}
	c.attempt.Method, _ = grpc.MethodFromServerStream(stream)
	c.conn = connectionOf(c.ctx)
	if c.conn == nil {
		return status.Error(codes.Internal, "testserver: the server's credentials hide the connection")
	}
	c.attempt.Conn = c.conn.id
	var step Step
	step, c.k = s.scripts.next(c.attempt.Method)
	seen := s.record.keep != 0 || step.pick != nil
	if seen {
		c.attempt.Metadata, _ = metadata.FromIncomingContext(c.ctx)
	}
	deadline, _ := c.ctx.Deadline()
	s.record.begin(c.attempt, deadline)
	err := c.receive(&s.record, seen)
	if err == nil {
		err = c.run(step)
	}
	s.record.update(func() {
		c.attempt.End, c.attempt.Code, c.attempt.Cancelled = time.Now(), status.Code(err), c.cancelled
	})
	return err
}

// connectionOf finds the connection of a call in its peer's address, where [connection.RemoteAddr]
// has put it.
func connectionOf(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		if addr, ok := p.Addr.(peerAddr); ok {
			return addr.conn
		}
	}
	return nil
}

// receive reads the first message, if the client sends one.
func (c *call) receive(r *record, keep bool) error {
	first := request{skip: !keep}
	err := c.stream.RecvMsg(&first)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return c.ended(err)
	}
	if keep {
		r.update(func() { c.attempt.Request = first.bytes })
	}
	return nil
}

// run carries out a step.
func (c *call) run(s Step) error {
	if len(s.trailer) > 0 {
		c.stream.SetTrailer(s.trailer)
	}
	if s.queue != nil {
		if err := s.queue.pass(c.ctx); err != nil {
			return c.ended(err)
		}
	}
	if s.header != nil || s.end == endDrop && s.replies != nil {
		if err := c.send(s, func() error { return c.stream.SendHeader(s.header) }); err != nil {
			return c.ended(err)
		}
	}
	if err := c.wait(s.delay); err != nil {
		return c.ended(err)
	}
	for _, b := range s.replies {
		if err := c.send(s, func() error { return c.stream.SendMsg(b) }); err != nil {
			return c.ended(err)
		}
	}
	return c.finish(s)
}

// send sees to it that what is sent before a drop arrives.
func (c *call) send(s Step, send func() error) error {
	if s.end != endDrop {
		return send()
	}
	return c.conn.flush(c.ctx, send)
}

func (c *call) finish(s Step) error {
	switch s.end {
	case endOK:
		if s.replies != nil {
			return nil
		}
		return c.ended(c.stream.SendMsg([]byte{}))
	case endHang:
		<-c.ctx.Done()
		return c.ended(c.ctx.Err())
	case endDrop:
		_ = c.conn.Close()
		return status.Error(codes.Unavailable, "testserver: connection dropped")
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
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// ended turns an error that comes from the client's having gone away, or its deadline, into the
// status of that; others remain.
func (c *call) ended(err error) error {
	if err == nil || c.ctx.Err() == nil {
		return err
	}
	c.cancelled = true
	return status.FromContextError(c.ctx.Err()).Err()
}
