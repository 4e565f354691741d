// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

// connection is the server's end. Its remote address contains the connection itself: gRPC passes the address to every
// handler, so that a handler can identify and cut its connection.
type connection struct {
	net.Conn
	id       int
	listener *listener
	closed   atomic.Bool
	frames   frames
	cutter   cutter
	written  atomic.Pointer[chan struct{}] // closed by the next write
}

// Close cuts the connection.
func (c *connection) Close() error {
	c.listener.forget(c)
	c.closed.Store(true)
	return c.Conn.Close()
}

// Write counts outgoing frames, and wakes goroutines that wait for them. gRPC writes from one goroutine.
func (c *connection) Write(b []byte) (int, error) {
	n, err := c.writeCut(b)
	c.frames.scan(b[:n])
	if waiting := c.written.Swap(nil); waiting != nil {
		close(*waiting)
	}
	return n, err
}

// flushTimeout ends the wait for frames on encrypted connections, where they can't be counted.
const flushTimeout = 100 * time.Millisecond

// flush calls send and waits until a frame with headers or data has gone out. gRPC only queues
// sends, so a connection that is closed directly after a send would mostly lose it.
func (c *connection) flush(ctx context.Context, send func() error) error {
	before := c.frames.sent.Load()
	if err := send(); err != nil {
		return err
	}
	timer := time.NewTimer(flushTimeout)
	defer timer.Stop()
	for {
		next := c.nextWrite()
		if c.frames.sent.Load() > before {
			return nil
		}
		select {
		case <-next:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *connection) nextWrite() <-chan struct{} {
	for {
		if waiting := c.written.Load(); waiting != nil {
			return *waiting
		}
		waiting := make(chan struct{})
		if c.written.CompareAndSwap(nil, &waiting) {
			return waiting
		}
	}
}

// frames counts the HTTP/2 frames with headers or data in a stream of bytes.
type frames struct {
	sent   atomic.Int64
	header [9]byte // of the current frame (RFC 9113, section 4.1)
	filled int     // bytes of header read so far
	rest   int     // remaining bytes of the previous frame
}

func (f *frames) scan(b []byte) {
	for len(b) > 0 {
		skip := min(f.rest, len(b))
		f.rest -= skip
		b = b[skip:]
		n := copy(f.header[f.filled:], b)
		b = b[n:]
		if f.filled += n; f.filled < len(f.header) {
			return
		}
		f.filled = 0
		f.rest = int(binary.BigEndian.Uint32(f.header[:]) >> 8)
		if kind := f.header[3]; kind <= 1 { // DATA, HEADERS
			f.sent.Add(1)
		}
	}
}

// RemoteAddr returns the client's address, which contains the connection.
func (c *connection) RemoteAddr() net.Addr { return peerAddr{c.Conn.RemoteAddr(), c} }

type peerAddr struct {
	net.Addr
	conn *connection
}

func (a peerAddr) String() string { return fmt.Sprintf("%s#%d", a.Addr, a.conn.id) }

// connectionOf returns the connection of a call, from its peer's address ([connection.RemoteAddr]
// has put it there).
func connectionOf(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		if addr, ok := p.Addr.(peerAddr); ok {
			return addr.conn
		}
	}
	return nil
}
