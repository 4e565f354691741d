// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// hop is a server in a chain, which counts its requests.
type hop struct {
	requests atomic.Int64
	address  string
}

// startHop starts a server that answers every unary method as answer says.
func startHop(t *testing.T, answer func(stream grpc.ServerStream) error, opts ...grpc.ServerOption) *hop {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hop{address: lis.Addr().String()}
	srv := grpc.NewServer(append(opts, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		h.requests.Add(1)
		return answer(stream)
	}))...)
	go func() { _ = srv.Serve(lis) }() // until the test stops it
	t.Cleanup(srv.Stop)
	return h
}

// TestChain makes clients in three languages call a service whose own downstream service is down. All of them retry; with
// stagger's server interceptors in the middle, only the layer above the failure does.
func TestChain(t *testing.T) {
	required(t)
	callers := allCallers(t, buildStagger(t))
	shown := table{header: []string{"top", "guard", "requests in the middle", "at the bottom"}}
	for _, c := range callers {
		for _, guarded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/guarded=%t", c.name, guarded), func(t *testing.T) {
				bottom := startHop(t, func(grpc.ServerStream) error { return status.Error(codes.Unavailable, "down") })
				r := retrier(t, exportedPolicy)
				below := dial(t, bottom.address, r.DialOptions()...)
				var opts []grpc.ServerOption
				if guarded {
					opts = r.ServerOptions()
				}
				middle := startHop(t, func(stream grpc.ServerStream) error {
					m := new(emptypb.Empty)
					if err := stream.RecvMsg(m); err != nil {
						return err
					}
					if err := below.Invoke(stream.Context(), getOrder, m, m); err != nil {
						return err
					}
					return stream.SendMsg(m)
				}, opts...)
				answers := c.call(t, order{middle.address, getOrder, "unary", 1})
				want := "4, 16"
				if guarded {
					want = "1, 4"
				}
				if got := fmt.Sprintf("%d, %d", middle.requests.Load(), bottom.requests.Load()); got != want || answers[0] != "UNAVAILABLE" {
					t.Errorf("requests in the middle and at the bottom: %s, and %v; want %s", got, answers, want)
				}
				guard := "none"
				if guarded {
					guard = "`Retrier.ServerOptions`"
				}
				shown.rows = append(shown.rows, []string{
					c.name, guard, strconv.FormatInt(middle.requests.Load(), 10), strconv.FormatInt(bottom.requests.Load(), 10),
				})
			})
		}
	}
	evidence.add(41, section{title: "A chain of services", text: chainText, tables: []table{shown}})
}

const chainText = `
A client calls a service, which calls one that is down. Each layer makes up to four attempts. Without the guard they multiply to 16 requests; with
it there are 4, whatever the language of the client on top, because a trailer from the service in the middle says that it
has already retried.`
