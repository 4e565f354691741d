// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/testserver"
)

// Linux drops a connection if its data isn't acknowledged for 20 s.
func TestKeepalive_UserTimeout(t *testing.T) {
	t.Parallel()
	const userTimeout = 18 // TCP_USER_TIMEOUT
	for name, row := range map[string]struct {
		options []interceptor.Option
		want    int // in ms
	}{"with it": {[]interceptor.Option{interceptor.WithKeepalive()}, 20_000}, "without": {nil, 0}} {
		server := testserver.Start(t, testserver.Listener(must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)))
		server.On("*", text("here"))
		var dialled *net.TCPConn
		r := mustNew(t, mustSet(t, config(plain())), append(row.options, quiet)...)
		conn := server.Dial(t, append(r.DialOptions(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", server.Target())
			dialled, _ = conn.(*net.TCPConn)
			return conn, err
		}))...)
		if err := conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		raw, err := dialled.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if failed := raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout) }); failed != nil || err != nil || got != row.want {
			t.Errorf("%s: TCP_USER_TIMEOUT is %d ms, %v, %v; want %d ms", name, got, failed, err, row.want)
		}
	}
}
