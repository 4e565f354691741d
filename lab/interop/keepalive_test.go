// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
)

// pinging is a client whose connection is quiet but for pings, and the server that allows them.
type pinging struct {
	every   time.Duration // between two pings: the client's keepalive time
	allowed time.Duration // by the server; 0: its default
	pings   int           // that the client sends
}

// TestKeepalive_Pings sends twenty pings, as soon after one another as gRPC's clients may, to servers that allow them. No server
// closes the connection for too many pings: while one call runs, in calls one after the other, and in rare calls that find a
// quiet connection.
func TestKeepalive_Pings(t *testing.T) {
	if os.Getenv("STAGGER_PINGS") == "" {
		t.Skip("it takes four minutes; `make pings` runs it")
	}
	pinging{every: 10 * time.Second, allowed: 8 * time.Second, pings: 20}.run(t)
}

func (p pinging) run(t *testing.T) {
	servers := map[string]func(t *testing.T) (port int){"Go": p.startGo, "Python": p.startPython}
	for language, start := range servers {
		port := start(t)
		for name, calls := range map[string]func(t *testing.T, conn *grpc.ClientConn){
			"one long call":     p.long,
			"calls, one by one": p.oneByOne,
			"short calls, rare": p.rare,
		} {
			t.Run(language+", "+name, func(t *testing.T) {
				t.Parallel()
				var seen frames
				conn := dial(t, address(port), grpc.WithContextDialer(seen.dial),
					grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: p.every, Timeout: 20 * time.Second}))
				calls(t, conn)
				if seen.pings < p.pings || seen.connections != 1 || seen.goaway != "" {
					t.Errorf("%d pings, %d connections, GOAWAY %q; want %d pings on one connection", seen.pings,
						seen.connections, seen.goaway, p.pings)
				}
			})
		}
	}
}

// slack is a bit more than the time between two pings.
func (p pinging) slack() time.Duration { return p.every + p.every/20 }

// long makes one call that runs while all pings are sent.
func (p pinging) long(t *testing.T, conn *grpc.ClientConn) {
	p.call(t, conn, time.Duration(p.pings)*p.slack())
}

// oneByOne makes calls in each of which there is a ping.
func (p pinging) oneByOne(t *testing.T, conn *grpc.ClientConn) {
	for range p.pings {
		p.call(t, conn, p.slack())
	}
}

// rare makes short calls, each of which finds a connection that has been quiet for so long that it is pinged at once.
func (p pinging) rare(t *testing.T, conn *grpc.ClientConn) {
	for range p.pings + 1 {
		p.call(t, conn, p.every/100)
		pass(t, p.slack())
	}
}

// call makes a call that is answered after a time.
func (p pinging) call(t *testing.T, conn *grpc.ClientConn, after time.Duration) {
	t.Helper()
	if err := conn.Invoke(t.Context(), getOrder, wrapperspb.Double(after.Seconds()), new(wrapperspb.DoubleValue)); err != nil {
		t.Errorf("a call of %v: %v", after, err)
	}
}

func (p pinging) startGo(t *testing.T) int {
	t.Helper()
	var options []grpc.ServerOption
	if p.allowed > 0 {
		options = append(options, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: p.allowed}))
	}
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		m := new(wrapperspb.DoubleValue)
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
		timer := time.NewTimer(time.Duration(m.GetValue() * float64(time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stream.Context().Done():
		}
		return stream.SendMsg(m)
	}))...)
	port := testkit.Port(t)
	lis := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", address(port)))(t)
	go func() { _ = server.Serve(lis) }() // returns an error when the server is stopped
	t.Cleanup(server.Stop)
	return port
}

// startPython starts a server of gRPC's C-core, which is that of C++, too.
func (p pinging) startPython(t *testing.T) int {
	t.Helper()
	port := testkit.Port(t)
	testkit.StartProcess(t, nil, nil, "/usr/bin/python3", program(t, "python/server.py"), strconv.Itoa(port), strconv.FormatInt(p.allowed.Milliseconds(), 10))
	listening(t, port)
	return port
}

// frames counts what a client's connections send and receive.
type frames struct {
	mu          sync.Mutex
	connections int
	pings       int    // keepalive's
	goaway      string // the last one's text
}

// dial is a dialer of gRPC's.
func (f *frames) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connections++
	return &framedConn{Conn: conn, sent: frameReader{skip: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame: f.sent}, received: frameReader{frame: f.received}}, nil
}

// The types and flags of HTTP/2's frames.
const (
	framePing   = 6
	frameGoAway = 7
	flagAck     = 1
)

// sent counts a ping of keepalive's: 8 bytes of 0. gRPC's others, which measure the bandwidth, have other bytes.
func (f *frames) sent(kind, flags byte, body []byte) {
	if kind != framePing || flags&flagAck != 0 || !bytes.Equal(body, make([]byte, 8)) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pings++
}

func (f *frames) received(kind, _ byte, body []byte) {
	if kind != frameGoAway || len(body) < 8 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.goaway = fmt.Sprintf("%d %s", binary.BigEndian.Uint32(body[4:]), body[8:])
}

// framedConn is a connection that reads along.
type framedConn struct {
	net.Conn
	sent, received frameReader
}

func (c *framedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.read(b[:n])
	return n, err
}

func (c *framedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.read(b[:n])
	return n, err
}

// frameReader finds HTTP/2's frames in the bytes of one direction.
type frameReader struct {
	skip  int // bytes before the first frame
	rest  []byte
	frame func(kind, flags byte, body []byte)
}

const frameHeader = 9

func (r *frameReader) read(b []byte) {
	skipped := min(r.skip, len(b))
	r.skip -= skipped
	r.rest = append(r.rest, b[skipped:]...)
	for len(r.rest) >= frameHeader {
		size := frameHeader + int(r.rest[0])<<16 + int(r.rest[1])<<8 + int(r.rest[2])
		if len(r.rest) < size {
			return
		}
		r.frame(r.rest[3], r.rest[4], r.rest[frameHeader:size])
		r.rest = r.rest[size:]
	}
}
