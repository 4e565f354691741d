// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// errUnavailable is the error of a failed attempt.
var errUnavailable = status.Error(codes.Unavailable, "no")

// answer returns how the n-th attempt ends, counted from 1 over all calls; on a stub, over those of a goroutine. It is
// called before a reply is sent or, for a stream, after its first message was received.
type answer func(ctx context.Context, n int64) error

func succeed(context.Context, int64) error { return nil }

func fail(context.Context, int64) error { return errUnavailable }

// failOdd fails the first attempt of each call, if calls run in sequence and each has two attempts.
func failOdd(_ context.Context, n int64) error {
	if n%2 == 1 {
		return errUnavailable
	}
	return nil
}

// hangOdd makes every other attempt hang.
func hangOdd(ctx context.Context, n int64) error {
	if n%2 == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// server is a minimal gRPC server, so that the clients cause most of the difference.
type server struct {
	*grpc.Server

	listener *bufconn.Listener
	attempts atomic.Int64
	answer   answer
	stream   func(grpc.ServerStream) error
}

// serve starts a server in memory. answer controls Get, and stream serves streams.
func serve(answer answer, stream func(grpc.ServerStream) error) *server {
	s := &server{Server: grpc.NewServer(grpc.WaitForHandlers(true)), listener: bufconn.Listen(128 << 10), answer: answer, stream: stream}
	get := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := new(wrapperspb.StringValue)
		if err := decode(request); err != nil {
			return nil, err
		}
		return request, s.answer(ctx, s.attempts.Add(1))
	}
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: callName, Handler: get}},
		Streams:     []grpc.StreamDesc{{StreamName: streamName, Handler: s.streamed, ServerStreams: true, ClientStreams: true}},
	}, nil)
	go func() { _ = s.Serve(s.listener) }() // until Stop
	return s
}

func (s *server) streamed(_ any, stream grpc.ServerStream) error {
	if err := receive(stream); err != nil {
		return err
	}
	if err := s.answer(stream.Context(), s.attempts.Add(1)); err != nil {
		return err
	}
	return s.stream(stream)
}

// pings are stagger's defaults, for all clients: with a keepalive, gRPC reads the clock for each frame, which no retries cost.
var pings = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}

// dial connects a client with the server.
func (s *server) dial(options []grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///memory", append([]grpc.DialOption{
		grpc.WithKeepaliveParams(pings),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.listener.DialContext(ctx) }),
	}, options...)...)
}

// stub makes calls of a client's interceptor with only the response behind it.
func (c setup) stub(answer answer) backend {
	type counter struct {
		atomic.Int64

		_ [120]byte // goroutines share no cache line
	}
	var all []*counter
	operation := func() func() error {
		own := new(counter)
		all = append(all, own)
		invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			return answer(ctx, own.Add(1))
		}
		ctx, options := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
		request, reply := new(wrapperspb.StringValue), new(wrapperspb.StringValue)
		return func() error { return c.unary(ctx, method, request, reply, nil, invoke, options...) }
	}
	attempts := func() (sum int64) {
		for _, own := range all {
			sum += own.Load()
		}
		return sum
	}
	return backend{operation, attempts}
}

// onStub makes a call that succeeds.
func (c setup) onStub(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	answer := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	return c.unary(ctx, method, request, reply, nil, answer, options...)
}

// invoker makes a call, as a connection does.
type invoker func(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error

// on returns how the client makes calls on a connection that it shares: as one with its interceptor does.
func (c setup) on(conn *grpc.ClientConn) invoker {
	if c.unary == nil {
		return conn.Invoke
	}
	last := func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, options ...grpc.CallOption) error {
		return cc.Invoke(ctx, method, request, reply, options...)
	}
	return func(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
		return c.unary(ctx, method, request, reply, conn, last, options...)
	}
}

// opener opens a stream, as a connection does.
type opener func(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error)

// streamsOn returns how the client opens streams on a connection that it shares.
func (c setup) streamsOn(conn *grpc.ClientConn) opener {
	if c.stream == nil {
		return conn.NewStream
	}
	last := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
		return cc.NewStream(ctx, desc, method, options...)
	}
	return func(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
		return c.stream(ctx, desc, conn, method, last, options...)
	}
}

// calling returns an operation that makes a call.
func calling(invoke invoker) func(context.Context) error {
	request, options := wrapperspb.String("7"), []grpc.CallOption{grpc.StaticMethod()}
	return func(ctx context.Context) error {
		return invoke(ctx, method, request, new(wrapperspb.StringValue), options...)
	}
}
