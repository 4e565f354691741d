// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rollout

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// backend is a server that can be replaced.
type backend interface {
	serve(conn net.Conn) // starts to serve a connection
	leave()              // accepts no new streams, and returns when running ones have ended
}

// place is an address with one backend after the other.
type place struct {
	newBackend func() backend
	listener   net.Listener

	mu      sync.Mutex
	backend backend
	leaving sync.WaitGroup // backends
}

func (p *place) run() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.backend.serve(conn)
		p.mu.Unlock()
	}
}

// replace lets the backend leave, while another one accepts all further connections.
func (p *place) replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving.Go(p.backend.leave)
	p.backend = p.newBackend()
}

// leave stops the last backend, and returns when all have ended.
func (p *place) leave() {
	p.backend.leave()
	p.leaving.Wait()
}

// graceful is gRPC's own server. It sends GOAWAY with the largest number, and again with the number of the last stream when
// the client has answered a ping.
type graceful struct {
	server *grpc.Server
	conns  connections
}

func newGraceful() backend {
	g := &graceful{
		server: grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
				return err
			}
			time.Sleep(served)
			return stream.SendMsg(&emptypb.Empty{})
		})),
		conns: connections{accepted: make(chan net.Conn), closed: make(chan struct{})},
	}
	go func() { _ = g.server.Serve(&g.conns) }()
	return g
}

func (g *graceful) serve(conn net.Conn) { g.conns.accepted <- conn }
func (g *graceful) leave()              { g.server.GracefulStop() }

// connections is a listener for connections that another listener has accepted.
type connections struct {
	accepted chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (c *connections) Accept() (net.Conn, error) {
	select {
	case conn := <-c.accepted:
		return conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

func (c *connections) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (*connections) Addr() net.Addr { return &net.TCPAddr{} }

// once is a server that sends GOAWAY once, with the number of the last stream that it has received. It ignores requests in
// transit, as RFC 9113 allows.
type once struct {
	mu    sync.Mutex
	conns []*onceConn
	ended sync.WaitGroup
}

func newOnce() backend { return new(once) }

func (o *once) serve(conn net.Conn) {
	c := &onceConn{conn: conn, framer: http2.NewFramer(conn, conn)}
	c.encoder = hpack.NewEncoder(&c.block)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns = append(o.conns, c)
	o.ended.Go(c.run)
}

func (o *once) leave() {
	o.mu.Lock()
	for _, c := range o.conns {
		c.leave()
	}
	o.mu.Unlock()
	o.ended.Wait() // the client closes idle connections
}

// onceConn is one connection.
type onceConn struct {
	conn   net.Conn
	framer *http2.Framer

	mu      sync.Mutex // guards writing, and
	block   bytes.Buffer
	encoder *hpack.Encoder
	last    uint32 // stream
	leaving bool
}

func (c *onceConn) run() {
	defer c.conn.Close()
	if _, err := io.ReadFull(c.conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	c.write(func() error { return c.framer.WriteSettings() })
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				c.write(c.framer.WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				c.write(func() error { return c.framer.WritePing(true, frame.Data) })
			}
		case *http2.HeadersFrame:
			c.headers(frame.StreamID)
		}
	}
}

// headers answers a call after its time.
func (c *onceConn) headers(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return
	}
	c.last = id
	time.AfterFunc(served, func() {
		c.write(func() error {
			if err := c.fields(id, false, ":status", "200", "content-type", "application/grpc"); err != nil {
				return err
			}
			if err := c.framer.WriteData(id, false, make([]byte, 5)); err != nil {
				return err
			}
			return c.fields(id, true, "grpc-status", "0")
		})
	})
}

func (c *onceConn) leave() {
	c.write(func() error {
		c.leaving = true
		return c.framer.WriteGoAway(c.last, http2.ErrCodeNo, nil)
	})
}

// fields writes headers or trailers. c.mu must be held.
func (c *onceConn) fields(id uint32, end bool, fields ...string) error {
	c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		if err := c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: end})
}

// write writes; a broken connection ends by itself.
func (c *onceConn) write(frames func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := frames(); err != nil {
		_ = c.conn.Close()
	}
}
