// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rollout

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// listen returns a listener in memory, or on loopback.
func listen(tb testing.TB) net.Listener {
	tb.Helper()
	if !*loopback {
		return bufconn.Listen(1 << 16)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return lis
}

// dialer connects to "address/number" of a place.
func dialer(places []*place) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		_, number, _ := strings.Cut(address, "/")
		i, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		switch lis := places[i].listener.(type) {
		case *bufconn.Listener:
			conn, err := lis.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			return delayed(conn), nil
		default:
			return new(net.Dialer).DialContext(ctx, "tcp", lis.Addr().String())
		}
	}
}

// delayedConn is a connection with a delay in both directions.
type delayedConn struct {
	net.Conn

	out, in chan packet
	rest    []byte // of the last packet
	once    sync.Once
	closed  chan struct{}
	running sync.WaitGroup
}

// packet is the data of one write, and their arrival time.
type packet struct {
	data []byte
	at   time.Time
	err  error
}

func delayed(conn net.Conn) net.Conn {
	c := &delayedConn{Conn: conn, out: make(chan packet, 1<<12), in: make(chan packet, 1<<12), closed: make(chan struct{})}
	c.running.Go(c.send)
	c.running.Go(c.receive)
	return c
}

// send delivers written data at their arrival time.
func (c *delayedConn) send() {
	for {
		select {
		case p := <-c.out:
			time.Sleep(time.Until(p.at))
			if _, err := c.Conn.Write(p.data); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

// receive reads the other side's data.
func (c *delayedConn) receive() {
	for {
		data := make([]byte, 1<<15)
		n, err := c.Conn.Read(data)
		select {
		case c.in <- packet{data[:n], time.Now().Add(*link), err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *delayedConn) Write(p []byte) (int, error) {
	select {
	case c.out <- packet{append([]byte(nil), p...), time.Now().Add(*link), nil}:
		return len(p), nil
	case <-c.closed:
		return 0, io.ErrClosedPipe
	}
}

func (c *delayedConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case next := <-c.in:
			time.Sleep(time.Until(next.at))
			if next.err != nil {
				return 0, next.err
			}
			c.rest = next.data
		case <-c.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *delayedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	err := c.Conn.Close()
	c.running.Wait()
	return err
}
