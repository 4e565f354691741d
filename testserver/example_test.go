// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

func ExampleNew() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("/acme.orders.v1.OrderService/GetOrder",
		testserver.Fail(codes.Unavailable, "warming up").Times(2),
		testserver.OK(wrapperspb.String("order 7")))

	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	for range 3 {
		var order wrapperspb.StringValue
		err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &order)
		fmt.Printf("%v %q\n", status.Code(err), order.GetValue())
	}
	for _, a := range srv.Attempts() {
		fmt.Println("attempt", a.Number, a.Code)
	}
	// Output:
	// Unavailable ""
	// Unavailable ""
	// OK "order 7"
	// attempt 1 Unavailable
	// attempt 2 Unavailable
	// attempt 3 OK
}

func ExampleStream() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("/acme.orders.v1.OrderService/WatchOrders",
		testserver.Stream(func(stream grpc.ServerStream) error {
			if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
				return err
			}
			_ = stream.SendMsg(wrapperspb.String("order 7: paid"))
			return stream.SendMsg(wrapperspb.String("order 7: packed"))
		}).Then(testserver.Fail(codes.Unavailable, "restarting").Pushback("250")), // first this,
		testserver.Stream(func(stream grpc.ServerStream) error {
			_ = stream.SendHeader(metadata.Pairs("shard", "7"))
			return stream.SendMsg([]byte("\xff")) // then a message that no client can read,
		}),
		testserver.OK()) // and then all is well

	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/acme.orders.v1.OrderService/WatchOrders")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = stream.SendMsg(&emptypb.Empty{})
	for err == nil {
		var event wrapperspb.StringValue
		if err = stream.RecvMsg(&event); err == nil {
			fmt.Println(event.GetValue())
		}
	}
	fmt.Println(status.Code(err), stream.Trailer()["grpc-retry-pushback-ms"])
	a := srv.Attempts()[0]
	fmt.Println("received", a.Received, "sent", a.Sent, a.Code)
	// Output:
	// order 7: paid
	// order 7: packed
	// Unavailable [250]
	// received 1 sent 2 Unavailable
}

func ExampleServer_On() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("/acme.orders.v1.OrderService/GetOrder",
		testserver.Fail(codes.ResourceExhausted).RetryInfo(2*time.Second), // first this,
		testserver.OK().Delay(time.Second).Times(3),                       // then three of these,
		testserver.Drop(), // then a cut connection,
		testserver.Hang()) // then no answer any more
	srv.On("/acme.orders.v1.OrderService/*", testserver.OK().Delay(20*time.Millisecond)) // all other methods of the service
	srv.On("*", testserver.Random(42, 0.1, testserver.Fail(codes.Unavailable)))          // everything else
	// Output:
}

func ExampleDialAll() {
	var servers []*testserver.Server
	for range 3 {
		srv, err := testserver.New()
		if err != nil {
			fmt.Println(err)
			return
		}
		defer srv.Close()
		servers = append(servers, srv)
	}
	conn, err := testserver.DialAll(servers, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Println(conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}))
	// Output: <nil>
}

func ExampleFunc() {
	srv, err := testserver.New(testserver.Keep(100)) // remembers the last 100 attempts
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("*", testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
		if a.Number%2 == 1 {
			return testserver.Fail(codes.Unavailable, "every other one")
		}
		return testserver.OK()
	}))
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	for range 3 {
		fmt.Println(status.Code(conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})))
	}
	// Output:
	// Unavailable
	// OK
	// Unavailable
}

func ExampleRandom() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	// A tenth of the requests fail, the same ones for the same seed.
	srv.On("*", testserver.Random(1, 0.1, testserver.Fail(codes.Unavailable)))
	// Output:
}

// In a test, nothing needs closing.
func ExampleStart() {
	test := func(t *testing.T, dialOptions ...grpc.DialOption) {
		srv := testserver.Start(t)
		srv.On("/grpc.health.v1.Health/Check",
			testserver.Fail(codes.Unavailable).Times(2),
			testserver.OK(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}))

		client := healthpb.NewHealthClient(srv.Dial(t, dialOptions...)) // with the options of your client
		response, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || response.GetStatus() != healthpb.HealthCheckResponse_SERVING || srv.Count("/grpc.health.v1.Health/Check") != 3 {
			t.Errorf("%v, %v; want an answer after three attempts", response, err)
		}
	}
	_ = test
}

func ExampleFailStatus() {
	st := status.New(codes.ResourceExhausted, "a hundred orders a minute")
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("/acme.orders.v1.OrderService/CreateOrder", testserver.FailStatus(st))
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Println(conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{}))
	// Output: rpc error: code = ResourceExhausted desc = a hundred orders a minute
}

// A server with a listener, limits and a real service of its own.
func ExampleListener() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv, err := testserver.New(
		testserver.Listener(lis),
		testserver.ServerOptions(grpc.MaxConcurrentStreams(10)),
		testserver.Register(func(r grpc.ServiceRegistrar) { healthpb.RegisterHealthServer(r, health.NewServer()) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, err = healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(err)
	// Output: <nil>
}

// A function learns of every attempt while the server runs.
func ExampleObserve() {
	srv, err := testserver.New(testserver.Observe(func(a testserver.Attempt) {
		if a.End.IsZero() {
			fmt.Println("attempt", a.Number, "begins")
			return
		}
		fmt.Println("attempt", a.Number, "ended with", a.Code)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("*", testserver.Fail(codes.Unavailable))
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	// Output:
	// attempt 1 begins
	// attempt 1 ended with Unavailable
}

// The connection breaks in the middle of the second message.
func ExampleCut() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("/acme.orders.v1.OrderService/WatchOrders", testserver.OK(wrapperspb.String("order 7: paid")).Then(testserver.Cut()))
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/acme.orders.v1.OrderService/WatchOrders")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = stream.SendMsg(&emptypb.Empty{})
	for err == nil {
		var event wrapperspb.StringValue
		if err = stream.RecvMsg(&event); err == nil {
			fmt.Println(event.GetValue())
		}
	}
	fmt.Println(status.Code(err))
	// Output:
	// order 7: paid
	// Unavailable
}

// The first attempt waits until the test lets it go on.
func ExampleStep_Before() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	arrived, released := make(chan struct{}), make(chan struct{})
	srv.On("/acme.orders.v1.OrderService/GetOrder",
		testserver.OK(wrapperspb.String("order 7")).Before(func(ctx context.Context) error {
			close(arrived)
			select {
			case <-released:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}),
		testserver.OK())
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	go func() {
		<-arrived
		fmt.Println("the server has the request")
		close(released)
	}()
	var order wrapperspb.StringValue
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &order)
	fmt.Println(order.GetValue(), err)
	// Output:
	// the server has the request
	// order 7 <nil>
}

// A response that the client cannot read.
func ExampleStep_RawReplies() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("*", testserver.OK().RawReplies([]byte("\xff")))
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	fmt.Println(status.Code(err))
	// Output: Internal
}

// A step of your own is refused by [testserver.Server.On] if its argument is wrong.
func ExampleStep_Invalid() {
	busy := func(retryAfter time.Duration) testserver.Step {
		step := testserver.Fail(codes.ResourceExhausted, "busy").RetryInfo(retryAfter)
		if retryAfter <= 0 {
			step = step.Invalid(fmt.Errorf("busy(%v): want more than 0", retryAfter))
		}
		return step
	}
	fmt.Println(busy(time.Second).Err())
	fmt.Println(busy(-time.Second).Err())
	// Output:
	// <nil>
	// busy(-1s): want more than 0
}

// A program replaces all scripts at once, for example when their file has changed.
func ExampleServer_Replace() {
	srv, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	fmt.Println(srv.Replace(map[string][]testserver.Step{
		"/acme.orders.v1.OrderService/GetOrder": {testserver.Fail(codes.Unavailable).Times(2), testserver.OK()},
		"*":                                     {testserver.OK().Delay(20 * time.Millisecond)},
	}))
	fmt.Println(srv.Replace(map[string][]testserver.Step{"GetOrder": {testserver.OK()}}))
	// Output:
	// <nil>
	// testserver: On("GetOrder"): want "/package.Service/Method", "/package.Service/*" or "*"
}
