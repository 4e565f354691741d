// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// refusingProxy is a proxy that refuses streams of calls that did run, as HAProxy does when a backend dies during a call.
type refusingProxy struct {
	behaviour

	mu   sync.Mutex
	ran  int // handlers
	down bool
}

// behaviour is a proxy's way of refusing.
type behaviour struct {
	onHeaders bool // at once, and not when a message has arrived
	leaves    bool // it takes no connection for half a second after that
}

func (p *refusingProxy) serve(lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		go p.serveConn(conn)
	}
}

func (p *refusingProxy) serveConn(conn net.Conn) {
	defer conn.Close()
	speak(conn, func(f *http2.Framer, frame http2.Frame) {
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			if p.onHeaders {
				p.answer(f, frame.StreamID)
			}
		case *http2.DataFrame:
			if !p.onHeaders && len(frame.Data()) > 0 {
				p.answer(f, frame.StreamID)
			}
		}
	})
}

// answer runs the handler, and refuses the stream of the first call.
func (p *refusingProxy) answer(f *http2.Framer, id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ran++; p.ran > 1 {
		complete(f, id)
		return
	}
	if p.leaves {
		p.down = true
		time.AfterFunc(500*ms, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.down = false
		})
		_ = f.WriteGoAway(id, http2.ErrCodeNo, nil)
	}
	_ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream)
}

// dial connects to the proxy while that takes connections.
func (p *refusingProxy) dial(ctx context.Context, lis *bufconn.Listener) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errors.New("connection refused")
	}
	return lis.DialContext(ctx)
}

// TestTransparentRetry checks gRPC's invisible retries, after a server has refused a stream whose handler ran.
func TestTransparentRetry(t *testing.T) {
	allow, deny := new(true), new(false)
	for _, row := range []struct {
		name     string
		entry    *bool
		file     *bool
		method   string
		opts     []grpc.CallOption
		server   behaviour
		wrapped  bool // by an inner interceptor, with a context of its own
		kinds    []string
		ran      int
		attempts int
		reason   policy.Reason // "": the call succeeds
	}{
		{name: "nobody says anything", method: create, ran: 2, attempts: 1},
		{name: "allowed", entry: allow, file: deny, method: create, ran: 2, attempts: 1},
		{name: "denied by the entry", entry: deny, method: create, ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent},
		{name: "denied by the file", file: deny, method: create, ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent},
		{name: "denied without an entry", file: deny, method: "/acme.stock.v1.StockService/Sell", ran: 1, attempts: 1, reason: policy.ReasonNonRetryable},
		{name: "allowed without an entry", entry: deny, method: "/acme.stock.v1.StockService/Sell", ran: 2, attempts: 1},
		{
			name: "denied, whatever buffer the caller wants", entry: deny, method: create, ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent,
			opts: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(1 << 20)},
		},
		{name: "a method that is declared safe", entry: deny, method: get, ran: 2, attempts: 1},
		{name: "a call that is declared safe", entry: deny, method: create, ran: 2, attempts: 1, opts: []grpc.CallOption{interceptor.Idempotent()}},
		{name: "a call with a key", entry: deny, method: create, ran: 2, attempts: 1, opts: []grpc.CallOption{interceptor.IdempotencyKey("7")}},
		{name: "before any message, allowed", method: create, server: behaviour{onHeaders: true}, kinds: []string{"client", "bidi"}, ran: 2, attempts: 1},
		{
			name: "before any message, denied", entry: deny, method: create, server: behaviour{onHeaders: true}, kinds: []string{"server", "client", "bidi"},
			ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent,
		},
		{
			name: "before any message, denied, in a wrapped stream", entry: deny, method: create, server: behaviour{onHeaders: true}, wrapped: true,
			kinds: []string{"server", "client", "bidi"}, ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent,
		},
		{
			name: "before any message, denied without an entry, in a wrapped stream", file: deny, method: "/acme.stock.v1.StockService/Sell",
			server: behaviour{onHeaders: true}, wrapped: true,
			kinds: []string{"server", "client", "bidi"}, ran: 1, attempts: 1, reason: policy.ReasonNonRetryable,
		},
		{
			name: "denied, with credentials", entry: deny, method: create, server: behaviour{onHeaders: true}, wrapped: true,
			opts: []grpc.CallOption{grpc.PerRPCCredentials(bearer("t"))}, kinds: []string{"server", "client", "bidi"},
			ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent,
		},
		{name: "then no connection, allowed", method: create, server: behaviour{leaves: true}, ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent},
		{name: "then no connection, denied", entry: deny, method: create, server: behaviour{leaves: true}, ran: 1, attempts: 1, reason: policy.ReasonNotIdempotent},
	} {
		kinds := row.kinds
		if kinds == nil {
			kinds = []string{"unary", "server", "client", "bidi"}
		}
		for _, kind := range kinds {
			t.Run(row.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					lis := bufconn.Listen(1 << 16)
					defer lis.Close()
					p := &refusingProxy{behaviour: row.server}
					go p.serve(lis)
					c := config(plain())
					c.TransparentRetry = row.file
					for i := range c.Methods {
						c.Methods[i].TransparentRetry = row.entry
					}
					j := new(journal)
					conn, err := grpc.NewClient("passthrough:///proxy", append(mustNew(t, mustSet(t, c), withJournal(j)).DialOptions(),
						grpc.WithTransportCredentials(insecure.NewCredentials()),
						grpc.WithChainStreamInterceptor(
							func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
								stream, err := open(ctx, desc, cc, method, opts...)
								if row.wrapped && err == nil {
									stream = ownContext{stream, ctx}
								}
								return stream, err
							}),
						grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.dial(ctx, lis) }))...)
					if err != nil {
						t.Fatal(err)
					}
					err = callOf(t.Context(), conn, kind, row.method, row.opts...)
					if p.ran != row.ran || len(j.attempts) != row.attempts || reasonOf(err) != row.reason {
						t.Errorf("%v (%s): the handler ran %d times in %d attempts; want %q, %d times in %d",
							err, reasonOf(err), p.ran, len(j.attempts), row.reason, row.ran, row.attempts)
					}
					if row.reason != "" && status.Code(err) != codes.Unavailable {
						t.Errorf("%v; want UNAVAILABLE", err)
					}
					_ = conn.Close()
				})
			})
		}
	}
}

// ownContext is a stream with a context of an inner interceptor's.
type ownContext struct {
	grpc.ClientStream

	ctx context.Context
}

func (s ownContext) Context() context.Context { return s.ctx }

// bearer are credentials that are sent with each stream.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// callOf makes a call of any kind with one message in each direction. The server has answered to the headers before
// the message of a stream is sent.
func callOf(ctx context.Context, conn *grpc.ClientConn, kind, method string, opts ...grpc.CallOption) error {
	if kind == "unary" {
		return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, opts...)
	}
	desc := &grpc.StreamDesc{ServerStreams: kind != "client", ClientStreams: kind != "server"}
	stream, err := conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return err
	}
	synctest.Wait()
	_ = stream.SendMsg(&emptypb.Empty{})
	_ = stream.CloseSend()
	for err == nil {
		if err = stream.RecvMsg(&emptypb.Empty{}); !desc.ServerStreams {
			return err
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// denied is the interceptor of a set that denies transparent retries to the service of [create].
func denied(tb testing.TB, allowed bool) grpc.UnaryClientInterceptor {
	tb.Helper()
	c := config(plain())
	c.TransparentRetry = &allowed
	return mustNew(tb, mustSet(tb, c), quiet).Unary()
}

func TestTransparentRetryAllocations(t *testing.T) {
	unary, opts := denied(t, false), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(t.Context(), create, nil, nil, nil, answered, opts...) }
	if n := testing.AllocsPerRun(1000, call); n > slack {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
}

// BenchmarkTransparentRetry measures the cost of DENY for a method that is not declared idempotent.
func BenchmarkTransparentRetry(b *testing.B) {
	for name, allowed := range map[string]bool{"ALLOW": true, "DENY": false} {
		b.Run(name, func(b *testing.B) {
			unary, opts := denied(b, allowed), []grpc.CallOption{grpc.StaticMethod()}
			b.ReportAllocs()
			for b.Loop() {
				_ = unary(context.Background(), create, nil, nil, nil, answered, opts...)
			}
		})
	}
}
