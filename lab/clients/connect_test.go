// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

const (
	connectGet = "/lab.Echo/Get"
)

// connectServer is a connect-go server that speaks gRPC without TLS. Get fails on demand.
type connectServer struct {
	address  string
	requests atomic.Int64
	failing  atomic.Int64                          // number of requests of Get to fail
	failure  atomic.Pointer[func() *connect.Error] // they fail with this
}

func serveConnect(t *testing.T) *connectServer {
	t.Helper()
	s := &connectServer{}
	mux := http.NewServeMux()
	mux.Handle(connectGet, connect.NewUnaryHandler(connectGet,
		func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
			s.requests.Add(1)
			if s.failing.Add(-1) >= 0 {
				return nil, (*s.failure.Load())()
			}
			reply := connect.NewResponse(wrapperspb.String(r.Msg.GetValue() + " for " + r.Header().Get("User")))
			reply.Header().Set("Place", "header")
			reply.Trailer().Set("Place", "trailer")
			return reply, nil
		}))
	lis := listen(t)
	s.address = lis.Addr().String()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: &protocols}
	go func() { _ = server.Serve(lis) }() // it ends by Close
	t.Cleanup(func() { server.Close() })
	return s
}

// fail makes this many requests of Get fail.
func (s *connectServer) fail(n int64, failure func() *connect.Error) {
	s.requests.Store(0)
	s.failure.Store(&failure)
	s.failing.Store(n)
}

func dial(t *testing.T, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := must.Get(grpc.NewClient("passthrough:///"+address, append(opts, plaintext)...))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// names returns the policy file that names methods of a service.
func names(service string, methods ...string) string {
	text := "methodConfig:\n"
	for _, m := range methods {
		text += "  - {name: [{service: " + service + ", method: " + m + "}], " + retryPolicy + "}\n"
	}
	return text
}

func down() *connect.Error {
	return connect.NewError(connect.CodeUnavailable, errors.New("restarting"))
}

func TestConnect(t *testing.T) {
	noLeaks(t)
	s := serveConnect(t)
	type answer struct {
		reply, header, trailer string
		err                    error
	}
	call := func(conn *grpc.ClientConn) (a answer) {
		var header, trailer metadata.MD
		reply := &wrapperspb.StringValue{}
		ctx := metadata.AppendToOutgoingContext(within(t), "user", "7")
		a.err = conn.Invoke(ctx, connectGet, wrapperspb.String("order"), reply, grpc.Header(&header), grpc.Trailer(&trailer))
		a.reply, a.header, a.trailer = reply.GetValue(), fmt.Sprint(header["place"]), fmt.Sprint(trailer["place"])
		return a
	}
	bare := dial(t, s.address, grpc.WithDisableRetry())
	ours := dial(t, s.address, retrier(t, names("lab.Echo", "Get")).DialOptions()...)
	if want, got := call(bare), call(ours); got != want || got.reply != "order for 7" {
		t.Errorf("%v, without stagger %v", got, want)
	}
	for name, tc := range map[string]struct {
		failing  int64
		failure  func() *connect.Error
		requests int64
		reason   policy.Reason
	}{
		"down once": {1, down, 2, ""},
		"down":      {100, down, 4, policy.ReasonAttemptsExhausted},
		"bad":       {1, func() *connect.Error { return connect.NewError(connect.CodeInvalidArgument, errors.New("no")) }, 1, policy.ReasonNonRetryable},
		"told stop": {1, func() *connect.Error {
			err := down()
			err.Meta().Set("Grpc-Retry-Pushback-Ms", "-1")
			return err
		}, 1, policy.ReasonPushbackStop},
	} {
		t.Run(name, func(t *testing.T) {
			invoke := func(conn *grpc.ClientConn) error {
				return conn.Invoke(within(t), connectGet, wrapperspb.String("order"), &wrapperspb.StringValue{})
			}
			s.fail(tc.failing, tc.failure)
			want := invoke(bare)
			s.fail(tc.failing, tc.failure)
			err := invoke(ours)
			if n := s.requests.Load(); n != tc.requests {
				t.Errorf("%d requests, want %d", n, tc.requests)
			}
			if tc.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e, ok := errors.AsType[*interceptor.Error](err); !ok || e.Reason != tc.reason {
				t.Errorf("%+v, want %s", err, tc.reason)
			}
			if status.Code(err) != status.Code(want) || err.Error() != want.Error() || status.Code(err) == codes.OK {
				t.Errorf("the error is %q, without stagger %q", err, want)
			}
		})
	}
}
