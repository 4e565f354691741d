// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/breaker"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const get = "/acme.orders.v1.OrderService/GetOrder"

const retries = `
budgets: [{name: orders, bucket: {size: 4}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  waitForReady: false # no call waits for a server that is down
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: orders}
`

// dial returns a client of srv with retries and breakers.
func dial(tb testing.TB, srv *testserver.Server) *grpc.ClientConn {
	tb.Helper()
	set, err := policy.Parse("retry.yaml", []byte(retries))
	if err != nil {
		tb.Fatal(err)
	}
	breakers := new(breaker.Breakers)
	retrier, err := interceptor.New(set, interceptor.WithBreaker(breakers.For))
	if err != nil {
		tb.Fatal(err)
	}
	return srv.Dial(tb, retrier.DialOptions()...)
}

func call(ctx context.Context, conn *grpc.ClientConn) error {
	return conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{})
}

func TestBreakerOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t)
		conn := dial(t, srv)
		srv.On(get, testserver.Fail(codes.Unavailable))
		var err error
		for range 100 {
			err = call(t.Context(), conn)
		}
		if e, ok := errors.AsType[*interceptor.Error](err); !ok || e.Reason != policy.ReasonBreakerOpen || !errors.Is(err, gobreaker.ErrOpenState) {
			t.Errorf("%v; want the breaker to refuse", err)
		}
		if n := srv.Count(get); n != 20 {
			t.Errorf("%d requests in the outage; want 20, and then none", n)
		}
		srv.On(get, testserver.OK(&emptypb.Empty{}))
		time.Sleep(6 * time.Second)
		for range 3 {
			if err := call(t.Context(), conn); err != nil {
				t.Errorf("after the recovery: %v", err)
			}
		}
	})
}

func TestBreakerOfOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t)
		conn := dial(t, srv)
		srv.On(get, testserver.Fail(codes.NotFound))
		for range 100 {
			_ = call(t.Context(), conn)
		}
		if n := srv.Count(get); n != 100 {
			t.Errorf("%d requests; want 100", n)
		}
	})
}

// What this client does to itself opens no circuit for other callers; a server that nobody reaches does.
func TestBreakerOfLocalErrors(t *testing.T) {
	expired := func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, -1) }
	patient := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Minute)
	}
	for name, row := range map[string]struct {
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		options []grpc.CallOption
		down    bool
		opens   bool
	}{
		"expired calls":               {expired, nil, false, false},
		"requests that are too large": {patient, []grpc.CallOption{grpc.MaxCallSendMsgSize(0)}, false, false},
		"missing tokens":              {patient, []grpc.CallOption{grpc.PerRPCCredentials(noToken{})}, false, false},
		"a dead server":               {patient, []grpc.CallOption{grpc.WaitForReady(false)}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := testserver.Start(t)
				conn := dial(t, srv)
				srv.On(get, testserver.OK(&emptypb.Empty{}))
				if row.down {
					srv.Down()
				}
				for range 40 {
					ctx, cancel := row.ctx(t.Context())
					if err := conn.Invoke(ctx, get, wrapperspb.String("an order"), &emptypb.Empty{}, row.options...); err == nil {
						t.Error("a call succeeds")
					}
					cancel()
				}
				srv.Up()
				err := call(t.Context(), conn) // another caller's
				if errors.Is(err, gobreaker.ErrOpenState) != row.opens || !row.opens && err != nil {
					t.Errorf("%v; want an open circuit: %v", err, row.opens)
				}
			})
		})
	}
}

// noToken are credentials that have no token.
type noToken struct{}

func (noToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, status.Error(codes.Unavailable, "the token server is down")
}

func (noToken) RequireTransportSecurity() bool { return false }

func TestBreakerOfCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t)
		conn := dial(t, srv)
		impatient := func() {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			_ = call(ctx, conn)
		}
		srv.On(get, testserver.Hang())
		for range 50 {
			impatient()
		}
		if n := srv.Count(get); n != 50 {
			t.Errorf("%d requests; want 50, each of which its caller cancels", n)
		}
		srv.On(get, testserver.Fail(codes.Unavailable))
		for range 50 {
			_ = call(t.Context(), conn)
		}
		time.Sleep(6 * time.Second) // the circuit is now half open
		srv.On(get, testserver.Hang())
		impatient()
		srv.Reset()
		srv.On(get, testserver.Fail(codes.Unavailable))
		for range 50 {
			_ = call(t.Context(), conn)
		}
		if n := srv.Count(get); n != 1 {
			t.Errorf("%d requests after one that was cancelled; want 1, which opens the circuit again", n)
		}
	})
}
