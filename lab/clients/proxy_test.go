// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"testing"

	"github.com/mwitkow/grpc-proxy/proxy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// TestProxy retries in a proxy that forwards frames which it cannot decode.
func TestProxy(t *testing.T) {
	noLeaks(t)
	for _, tc := range []struct {
		options  []grpc.DialOption
		requests int
		code     codes.Code
	}{
		{[]grpc.DialOption{grpc.WithDisableRetry()}, 1, codes.Unavailable},
		{retrier(t, names("lab.Echo", "Get")).DialOptions(), 3, codes.OK},
	} {
		server := testserver.Start(t)
		backend := server.Dial(t, append(tc.options, grpc.WithDefaultCallOptions(grpc.CallCustomCodec(proxy.Codec())))...) //nolint:staticcheck // the library's own codec
		lis := listen(t)
		front := grpc.NewServer(grpc.CustomCodec(proxy.Codec()), grpc.UnknownServiceHandler(proxy.TransparentHandler( //nolint:staticcheck // as above
			func(ctx context.Context, _ string) (context.Context, *grpc.ClientConn, error) {
				md, _ := metadata.FromIncomingContext(ctx)
				return metadata.NewOutgoingContext(ctx, md), backend, nil
			})))
		go func() { _ = front.Serve(lis) }() // it ends by Stop
		t.Cleanup(front.Stop)
		conn := dial(t, lis.Addr().String(), grpc.WithDisableRetry())

		call := func() (string, error) {
			var reply wrapperspb.StringValue
			err := conn.Invoke(metadata.AppendToOutgoingContext(within(t), "user", "7"), connectGet, wrapperspb.String("request"), &reply)
			return reply.GetValue(), err
		}
		server.On(connectGet, testserver.OK(wrapperspb.String("reply")))
		if reply, err := call(); err != nil || reply != "reply" || server.Attempts()[0].Metadata.Get("user")[0] != "7" {
			t.Errorf("%q, %v", reply, err)
		}
		server.Reset()
		server.On(connectGet, testserver.Fail(codes.Unavailable).Times(2), testserver.OK(wrapperspb.String("reply")))
		if reply, err := call(); status.Code(err) != tc.code || (reply == "reply") != (err == nil) {
			t.Errorf("%q, %v; want %v", reply, err, tc.code)
		}
		if n := server.Count(connectGet); n != tc.requests {
			t.Errorf("%d requests, want %d", n, tc.requests)
		}
	}
}
