// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// chain says how four services call each other: A, where the user is, calls B, that calls C, that calls D.
type chain struct {
	unary  bool             // B and C have unary handlers; streams otherwise
	guards string           // of "BC": servers with the Retrier's interceptor
	grpcs  string           // of "ABC": clients that retry by gRPC's own policy, as often as the Retrier
	retry  policy.RetrySpec // of the other clients
	fails  float64          // how often B and C fail by themselves, 0 to 1; how D does, its script says
}

// three is the policy of most chains: 3 attempts after UNAVAILABLE, and no budget.
func three(rule policy.Chain) policy.RetrySpec {
	retry := plain()
	retry.MaxAttempts, retry.Chain = 3, rule
	return retry
}

// services are a chain that runs.
type services struct {
	b, c, d *testserver.Server
	user    *grpc.ClientConn // of A, to B
	unary   bool
}

// start starts the services, with a Retrier of its own for each client.
func (c chain) start(t *testing.T) services {
	t.Helper()
	s := services{d: testserver.Start(t), unary: c.unary}
	s.c = c.serve(t, "C", c.dial(t, "C", s.d))
	s.b = c.serve(t, "B", c.dial(t, "B", s.c))
	s.user = c.dial(t, "A", s.b)
	return s
}

const ownRetries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s",
	"maxBackoff": "60s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// dial connects a service to the next.
func (c chain) dial(t *testing.T, name string, to *testserver.Server) *grpc.ClientConn {
	t.Helper()
	if strings.Contains(c.grpcs, name) {
		return to.Dial(t, grpc.WithDefaultServiceConfig(ownRetries))
	}
	r := mustNew(t, mustSet(t, config(c.retry)), quiet, interceptor.WithRandom(func() float64 { return 0.5 }))
	return to.Dial(t, r.DialOptions()...)
}

// serve starts a service that answers every call with what the next one answers.
func (c chain) serve(t *testing.T, name string, next *grpc.ClientConn) *testserver.Server {
	t.Helper()
	var guard grpc.ServerOption = grpc.EmptyServerOption{}
	options := []testserver.Option{testserver.Name(name + " of " + t.Name())}
	if strings.Contains(c.guards, name) {
		r := mustNew(t, mustSet(t, policy.Config{}))
		guard = grpc.ChainUnaryInterceptor(r.UnaryServer())
		options = append(options, testserver.ServerOptions(grpc.ChainStreamInterceptor(r.StreamServer())))
	}
	options = append(options, testserver.ServerOptions(guard))
	if c.unary {
		return testserver.Start(t, append(options, testserver.Register(unaryOrders(func(ctx context.Context) error {
			return ask(ctx, next, true)
		})))...)
	}
	srv := testserver.Start(t, options...)
	srv.On(get, testserver.Func(func(ctx context.Context, a testserver.Attempt) testserver.Step {
		if rand.New(rand.NewPCG(uint64(name[0]), uint64(a.Number))).Float64() < c.fails {
			return testserver.Fail(codes.Unavailable, name+" failed by itself")
		}
		return answer(ask(ctx, next, false))
	}))
	return srv
}

// answer is that of a service whose own call ended with err.
func answer(err error) testserver.Step {
	if err != nil {
		return testserver.FailStatus(status.Convert(err))
	}
	return text("done")
}

// ask makes a call to the next service, as a unary call or as a server stream.
func ask(ctx context.Context, next *grpc.ClientConn, unary bool, opts ...grpc.CallOption) error {
	if unary {
		return next.Invoke(ctx, get, wrapperspb.String("order 7"), new(wrapperspb.StringValue), opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := next.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, get, opts...)
	if err == nil {
		err = stream.SendMsg(wrapperspb.String("order 7"))
	}
	for err == nil {
		err = stream.RecvMsg(new(wrapperspb.StringValue))
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// call is the user's.
func (s services) call(t *testing.T, opts ...grpc.CallOption) error {
	t.Helper()
	return ask(t.Context(), s.user, s.unary, opts...)
}

// unaryOrders is the order service with a unary GetOrder, as generated code would register it.
func unaryOrders(handle func(ctx context.Context) error) func(grpc.ServiceRegistrar) {
	method := grpc.MethodDesc{
		MethodName: "GetOrder",
		Handler: func(srv any, ctx context.Context, dec func(any) error, icpt grpc.UnaryServerInterceptor) (any, error) {
			order := new(wrapperspb.StringValue)
			if err := dec(order); err != nil {
				return nil, err
			}
			inner := func(ctx context.Context, _ any) (any, error) { return order, handle(ctx) }
			if icpt == nil {
				return inner(ctx, order)
			}
			return icpt(ctx, order, &grpc.UnaryServerInfo{Server: srv, FullMethod: get}, inner)
		},
	}
	desc := grpc.ServiceDesc{ServiceName: "acme.orders.v1.OrderService", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{method}}
	return func(r grpc.ServiceRegistrar) { r.RegisterService(&desc, nil) }
}
