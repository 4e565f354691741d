// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

// A server whose machine vanishes sends no reset. DialOptions ask gRPC to notice that within 6 min 20 s after the last byte, on every
// system; Linux is faster, which `make vanish` measures. The caller's own keepalive counts if it comes after DialOptions.
func TestKeepalive(t *testing.T) {
	faster := grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute, Timeout: 5 * time.Second})
	for name, row := range map[string]struct {
		before, after []grpc.DialOption
		ends          time.Duration // of the call
		pause         time.Duration // of the server; 0: it is never back
	}{
		"the machine vanishes":         {ends: 6*time.Minute + 20*time.Second},
		"the caller's own comes after": {after: []grpc.DialOption{faster}, ends: time.Minute + 5*time.Second},
		"a caller's own before these":  {before: []grpc.DialOption{faster}, ends: 6*time.Minute + 20*time.Second},
		"a pause of 10 s":              {pause: 10 * time.Second, ends: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				r := mustNew(t, mustSet(t, spec.Config{}), quiet)
				conn := m.dial(t, append(append(row.before, r.DialOptions()...), row.after...)...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				if row.pause > 0 {
					time.AfterFunc(6*time.Minute-time.Second, m.freeze) // the ping comes then
					time.AfterFunc(6*time.Minute-time.Second+row.pause, m.wake)
				} else {
					time.AfterFunc(time.Second, m.freeze)
				}
				err := conn.Invoke(ctx, get, new(emptypb.Empty), new(emptypb.Empty))
				if took := time.Since(began); took < row.ends || took > row.ends+time.Second {
					t.Errorf("%v after %v; want the end after %v", err, took, row.ends)
				}
				if want := row.pause == 0; (status.Code(err) == codes.Unavailable) != want {
					t.Errorf("%v; want a lost connection: %v", err, want)
				}
			})
		})
	}
}

// A connection without calls is not pinged: servers count that as too many pings.
func TestKeepalive_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		conn := m.dial(t, mustNew(t, mustSet(t, spec.Config{}), quiet).DialOptions()...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = conn.Invoke(ctx, get, new(emptypb.Empty), new(emptypb.Empty))
		time.Sleep(time.Second)
		sent := m.sent.Load()
		time.Sleep(25 * time.Minute)
		if n := m.sent.Load() - sent; n != 0 {
			t.Errorf("an idle connection has sent %d bytes", n)
		}
	})
}

// machine has a server whose calls never end, and whose bytes don't arrive while it is frozen. What a client sends is taken nevertheless,
// as by a network. So the client sees no difference to a machine that has vanished.
type machine struct {
	lis   *bufconn.Listener
	awake chan struct{} // has a token unless it is frozen
	sent  atomic.Int64  // bytes of clients
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{lis: bufconn.Listen(1 << 16), awake: make(chan struct{}, 1)}
	m.wake()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	go func() { _ = server.Serve(m.lis) }() // returns an error when the server is stopped
	t.Cleanup(server.Stop)
	return m
}

func (m *machine) freeze() { <-m.awake }
func (m *machine) wake()   { m.awake <- struct{}{} }

func (m *machine) dial(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := testkit.Must(grpc.NewClient("passthrough:///machine", append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			inner, err := m.lis.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			return &frozenConn{Conn: inner, machine: m, closed: make(chan struct{})}, nil
		}))...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// frozenConn is a client's connection to a machine.
type frozenConn struct {
	net.Conn

	machine *machine
	once    sync.Once
	closed  chan struct{}
}

func (c *frozenConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case token := <-c.machine.awake:
		c.machine.awake <- token
		return n, err
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *frozenConn) Write(b []byte) (int, error) {
	c.machine.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

func (c *frozenConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
