// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	get  = "/acme.orders.v1.OrderService/GetOrder"
	list = "/acme.orders.v1.OrderService/ListOrders"
	pay  = "/acme.payments.v1.PaymentService/CreatePayment"
	ms   = time.Millisecond
)

// scene is a server in memory with one connection to it.
type scene struct {
	*testserver.Server
	conn *grpc.ClientConn
}

// stage runs play in virtual time.
func stage(t *testing.T, play func(t *testing.T, s scene), opts ...testserver.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t, opts...)
		play(t, scene{srv, srv.Dial(t)})
	})
}

// answer is what a client gets.
type answer struct {
	reply           string
	err             error
	header, trailer metadata.MD
	elapsed         time.Duration
}

func (a answer) code() codes.Code { return status.Code(a.err) }

func (s scene) call(ctx context.Context, method string) answer { return invoke(ctx, s.conn, method) }

func invoke(ctx context.Context, conn *grpc.ClientConn, method string) answer {
	var a answer
	var reply wrapperspb.StringValue
	start := time.Now()
	a.err = conn.Invoke(ctx, method, wrapperspb.String("request"), &reply, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.elapsed, a.reply = time.Since(start), reply.GetValue()
	return a
}

// codesOf calls method n times, one after the other.
func (s scene) codesOf(t *testing.T, method string, n int) string {
	t.Helper()
	var list []string
	for range n {
		list = append(list, s.call(t.Context(), method).code().String())
	}
	return strings.Join(list, " ")
}

func wantCode(t *testing.T, a answer, want codes.Code) {
	t.Helper()
	if a.code() != want {
		t.Errorf("the call ended with %v (%v); want %v", a.code(), a.err, want)
	}
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q; want %q", what, got, want)
	}
}

// tcp is a listener on a free port of this machine.
func tcp(t *testing.T) testserver.Option {
	t.Helper()
	return testserver.Listener(testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t))
}

func TestServerOnTCP(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, tcp(t))
	srv.On(get, testserver.Fail(codes.Unavailable).Times(1), testserver.Drop().Times(1), testserver.OK(wrapperspb.String("pong")))
	s := scene{srv, srv.Dial(t)}
	if host, _, err := net.SplitHostPort(srv.Target()); err != nil || host != "127.0.0.1" {
		t.Errorf("target %q, %v; want one on 127.0.0.1", srv.Target(), err)
	}
	wantText(t, "codes", s.codesOf(t, get, 2), "Unavailable Unavailable")
	a := invoke(t.Context(), s.conn, get)
	wantCode(t, a, codes.OK)
	wantText(t, "reply", a.reply, "pong")
	attempts := srv.Attempts()
	if first, last := attempts[0].Conn, attempts[2].Conn; first != 1 || last != 2 {
		t.Errorf("connections %d and %d; want 1, and 2 after the drop", first, last)
	}
}

func TestCloseEndsHangingCalls(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		time.AfterFunc(time.Second, s.Close)
		wantCode(t, s.call(t.Context(), get), codes.Unavailable)
		s.Close()
		if a := s.Attempts()[0]; a.End.IsZero() || !a.Cancelled {
			t.Errorf("the attempt is %+v; want it ended by the server's stop", a)
		}
	})
}

func TestTargetsDiffer(t *testing.T) {
	t.Parallel()
	a, b := testserver.Start(t), testserver.Start(t)
	if a.Target() == b.Target() {
		t.Errorf("two servers share the target %q", a.Target())
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		option testserver.Option
		want   string
	}{
		{testserver.Listener(nil), "testserver: Listener(nil): want a listener"},
		{testserver.Keep(-1), "testserver: Keep(-1): want 0 or more"},
		{testserver.Observe(nil), "testserver: Observe(nil): want a function"},
		{testserver.Register(nil), "testserver: Register(nil): want a function"},
		{tcp(t), "testserver: more than one Listener: want one"},
	} {
		_, err := testserver.New(tcp(t), row.option)
		if err == nil || err.Error() != row.want {
			t.Errorf("got error %v; want %s", err, row.want)
		}
	}
}

func TestServerOptions(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		wantCode(t, s.call(t.Context(), get), codes.ResourceExhausted)
	}, testserver.ServerOptions(grpc.MaxRecvMsgSize(3)))
}
