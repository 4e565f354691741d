// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// first reads the first message, if the client sends one, and keeps it for receive. It does nothing
// for a Stream, or the second time.
func (c *call) first(s Step) error {
	if s.streams || c.streamed || c.begun || c.halfClosed {
		return nil
	}
	b, err := c.read(nil)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		c.unread = append(c.unread, b)
	}
	return err
}

// receive takes the next message into m.
func (c *call) receive(m any) error {
	if len(c.unread) > 0 {
		b := c.unread[0]
		c.unread = nil
		return codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
	}
	_, err := c.read(m)
	return err
}

// read reads a message into m, unless that is nil, and records it. It returns io.EOF when the client has half-closed.
func (c *call) read(m any) ([]byte, error) {
	r := request{into: m, keep: c.seen}
	switch err := c.stream.RecvMsg(&r); {
	case errors.Is(err, io.EOF):
		c.halfClosed = true
		c.update(func(a *Attempt) { a.HalfClosed = true })
		return nil, err
	case err != nil:
		return nil, err
	}
	c.begun = true
	if c.seen {
		c.record.received(c.attempt, r.bytes)
	}
	return r.bytes, nil
}

func (c *call) sendHeader(md metadata.MD) error {
	if c.headersSent {
		return status.Errorf(codes.Internal, "testserver: %s: headers %v: headers were sent before: want all of them together", c.attempt.Method, md)
	}
	c.headersSent = true
	return c.flushed(func() error { return c.stream.SendHeader(md) })
}

func (c *call) sendAll(messages [][]byte) error {
	for _, b := range messages {
		if err := c.send(b); err != nil {
			return err
		}
	}
	return nil
}

// send sends a message. It counts the message before, so that clients never see a lower count.
func (c *call) send(m any) error {
	if c.flushes && !c.headersSent {
		if err := c.sendHeader(nil); err != nil {
			return err
		}
	}
	c.headersSent = true
	c.update(func(a *Attempt) { a.Sent++ })
	err := c.flushed(func() error { return c.stream.SendMsg(m) })
	if err != nil {
		c.update(func(a *Attempt) { a.Sent-- })
	}
	return err
}

// flushed calls send. Before a drop, it also waits until the data has gone out.
func (c *call) flushed(send func() error) error {
	if !c.flushes {
		return send()
	}
	return c.conn.flush(c.stream.Context(), send)
}

// update changes the attempt, if it is recorded or observed.
func (c *call) update(what func(*Attempt)) {
	if c.seen {
		c.record.update(func() { what(c.attempt) })
	}
}
