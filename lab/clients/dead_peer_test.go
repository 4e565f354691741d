// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
)

// deadPeer is a machine that vanishes: it takes what clients send, and the bytes of its server no longer reach them.
type deadPeer struct {
	lis *bufconn.Listener

	mu    sync.Mutex
	gone  chan struct{} // closed when it vanishes
	dials []time.Time
}

// newDeadPeer starts a machine with a server whose calls hang.
func newDeadPeer(t *testing.T) *deadPeer {
	t.Helper()
	p := &deadPeer{lis: bufconn.Listen(1 << 16), gone: make(chan struct{})}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	go func() { _ = server.Serve(p.lis) }() // it ends by Stop
	t.Cleanup(server.Stop)
	return p
}

// dialer is how clients reach the machine.
func (p *deadPeer) dialer() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		p.mu.Lock()
		p.dials = append(p.dials, time.Now())
		p.mu.Unlock()
		conn, err := p.lis.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		return &deadConn{conn, p, make(chan struct{}), sync.Once{}}, nil
	})
}

// again returns when clients dialled the second time: they have noticed that the machine is gone.
func (p *deadPeer) again() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dials) < 2 {
		return time.Time{}, false
	}
	return p.dials[1], true
}

// deadConn is a connection to a machine.
type deadConn struct {
	net.Conn

	peer   *deadPeer
	closed chan struct{}
	once   sync.Once
}

func (c *deadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.peer.gone:
		<-c.closed
		return 0, io.EOF
	default:
		return n, err
	}
}

func (c *deadConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A library's keepalive notices a machine that vanishes, and stagger doesn't replace it: gRPC uses the last WithKeepaliveParams, and
// libraries append their users' options. All in virtual time.
func TestDeadPeer(t *testing.T) {
	temporal := func(t *testing.T, ctx context.Context, dial []grpc.DialOption) {
		t.Helper()
		c := testkit.Must(client.NewLazyClient(client.Options{
			HostPort: "passthrough:///peer", Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
			ConnectionOptions: client.ConnectionOptions{DialOptions: dial},
		}))(t)
		defer c.Close()
		_, _ = c.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{})
	}
	etcd := func(t *testing.T, ctx context.Context, dial []grpc.DialOption) {
		t.Helper()
		c := testkit.Must(clientv3.New(clientv3.Config{
			Endpoints: []string{"peer:2379"}, DialOptions: dial, Logger: zap.NewNop(), MaxUnaryRetries: 1,
			DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second,
		}))(t)
		defer c.Close()
		_, _ = etcdserverpb.NewKVClient(c.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("k")})
	}
	ours := func(r *interceptor.Retrier) []grpc.DialOption { return r.DialOptions() }
	none := func(*interceptor.Retrier) []grpc.DialOption { return nil }
	for name, row := range map[string]struct {
		use     func(t *testing.T, ctx context.Context, dial []grpc.DialOption)
		options func(*interceptor.Retrier) []grpc.DialOption
		within  time.Duration
	}{
		"Temporal":                   {temporal, interceptorsOnly, 45 * time.Second},
		"Temporal, bare":             {temporal, none, 45 * time.Second},
		"Temporal, with DialOptions": {temporal, ours, 6*time.Minute + 20*time.Second}, // which is why the page doesn't say that
		"etcd":                       {etcd, interceptorsOnly, 40 * time.Second},
		"etcd, bare":                 {etcd, none, 40 * time.Second},
		"etcd, with DialOptions":     {etcd, ours, 6*time.Minute + 20*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := newDeadPeer(t)
				r := retrier(t, library{read: workflowservice.WorkflowService_PollWorkflowTaskQueue_FullMethodName}.text())
				defer r.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				began := time.Now().Add(time.Second)
				time.AfterFunc(time.Second, func() { close(peer.gone) })
				row.use(t, ctx, append(row.options(r), peer.dialer()))
				at, ok := peer.again()
				if took := at.Sub(began); !ok || took < row.within-5*time.Second || took > row.within+5*time.Second {
					t.Errorf("noticed after %v (%v); want %v", took, ok, row.within)
				}
			})
		})
	}
}
