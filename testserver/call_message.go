// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// untilHalfClose means all messages.
const untilHalfClose = -1

// first reads the first message, if the client sends one, and keeps it for receive. It does nothing
// for a Play, or the second time.
func (c *call) first(s Step) error {
	if s.plays || c.played || c.begun || c.halfClosed {
		return nil
	}
	b, ok, err := c.read(c.seen)
	if ok {
		c.unread = append(c.unread, b)
	}
	return err
}

// receive takes n messages, or fewer if the client half-closes, and calls use with each, unless it
// is nil.
func (c *call) receive(n int, use func([]byte) error) error {
	for i := 0; i != n; i++ {
		b, ok, err := c.next(c.seen || use != nil)
		if err != nil || !ok {
			return err
		}
		if use == nil {
			continue
		}
		if err := use(b); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) next(bytes bool) ([]byte, bool, error) {
	if len(c.unread) > 0 {
		b := c.unread[0]
		c.unread = nil
		return b, true, nil
	}
	return c.read(bytes)
}

// read reads a message and records it. It returns false when the client has half-closed.
func (c *call) read(bytes bool) ([]byte, bool, error) {
	m := request{skip: !bytes}
	switch err := c.stream.RecvMsg(&m); {
	case errors.Is(err, io.EOF):
		c.halfClosed = true
		c.update(func(a *Attempt) { a.HalfClosed = true })
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	c.begun = true
	c.update(func(a *Attempt) { a.received(m.bytes) })
	return m.bytes, true, nil
}

func (c *call) sendHeader(md metadata.MD) error {
	if c.headersSent {
		return status.Errorf(codes.Internal, "testserver: %s: headers %v: others have gone out before: want all at once", c.attempt.Method, md)
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
func (c *call) send(b []byte) error {
	if c.flushes && !c.headersSent {
		if err := c.sendHeader(nil); err != nil {
			return err
		}
	}
	c.headersSent = true
	c.update(func(a *Attempt) { a.Sent++ })
	err := c.flushed(func() error { return c.stream.SendMsg(b) })
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
