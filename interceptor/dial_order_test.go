// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

// TestDialOptionsOrder has the claim of docs/observability.md: who stands before the Retrier sees calls, who stands after it attempts.
func TestDialOptionsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := func(n *int) grpc.DialOption {
			return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				*n++
				return invoke(ctx, method, req, reply, cc, opts...)
			})
		}
		var before, after int
		s := testserver.Start(t)
		s.Default(testserver.Fail(codes.Unavailable, "").Times(2), testserver.OK())
		retrier := mustNew(t, mustSet(t, config(plain())))
		conn := s.Dial(t, append(append([]grpc.DialOption{count(&before)}, retrier.DialOptions()...), count(&after))...)
		if err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil || before != 1 || after != 3 {
			t.Errorf("unary: %v, seen %d times before and %d times after; want 1 and 3", err, before, after)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var before, after int
		s := testserver.Start(t)
		s.Default(testserver.Fail(codes.Unavailable, "").Times(2), testserver.OK())
		retrier := mustNew(t, mustSet(t, config(plain())))
		count := func(n *int) grpc.DialOption {
			return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				*n++
				return open(ctx, desc, cc, method, opts...)
			})
		}
		conn := s.Dial(t, append(append([]grpc.DialOption{count(&before)}, retrier.DialOptions()...), count(&after))...)
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, get)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		for err == nil {
			err = stream.RecvMsg(&emptypb.Empty{})
		}
		if before != 1 || after != 3 {
			t.Errorf("stream: %v, seen %d times before and %d times after; want 1 and 3", err, before, after)
		}
	})
}
