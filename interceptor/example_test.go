// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// dial connects to a server that is down for the first failures attempts of each method.
func dial(failures int, options ...grpc.DialOption) (conn *grpc.ClientConn, end func()) {
	srv, err := testserver.New()
	if err != nil {
		panic(err)
	}
	srv.On("*", testserver.Fail(codes.Unavailable, "restarting").Pushback("0").Times(failures), testserver.OK())
	conn, err = grpc.NewClient(srv.Target(), append(options, srv.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	return conn, func() { _ = conn.Close(); srv.Close() }
}

// Without a file, the program names the methods that may run twice, in addition to those that their .proto declares idempotent.
func Example() {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent: []string{"/acme.orders.v1.OrderService/GetOrder"},
	}, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(2, retrier.DialOptions()...) // grpc.NewClient(target, retrier.DialOptions()...)
	defer end()

	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	fmt.Println("GetOrder is named, and so safe to repeat:", status.Code(err))

	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{})
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println("CreateOrder is not:", status.Code(err), "after", e.Attempts, "attempt,", e.Reason)
	}
	// Output:
	// GetOrder is named, and so safe to repeat: OK
	// CreateOrder is not: Unavailable after 1 attempt, not_idempotent
}

func Example_file() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(2, retrier.DialOptions()...) // grpc.NewClient(target, retrier.DialOptions()...)
	defer end()

	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	fmt.Println("GetOrder is named in the file, and so safe to repeat:", status.Code(err))

	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{})
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println("CreateOrder is not:", status.Code(err), "after", e.Attempts, "attempt,", e.Reason)
	}
	// Output:
	// GetOrder is named in the file, and so safe to repeat: OK
	// CreateOrder is not: Unavailable after 1 attempt, not_idempotent
}

// At 3 a.m., an operator's handler turns all retries off.
func ExampleRetrier_SetMode() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	off := func() error {
		if err := retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}); err != nil {
			return err
		}
		return nil
	}
	conn, end := dial(2, retrier.DialOptions()...)
	defer end()

	if err := off(); err != nil {
		fmt.Println(err)
		return
	}
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println(status.Code(err), "after", e.Attempts, "attempt,", e.Reason)
	}
	// Output:
	// Unavailable after 1 attempt, mode_off
}

// A program may have its policies inside of it, as text.
func ExampleNew() {
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 2s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(1, retrier.DialOptions()...)
	defer end()
	fmt.Println(conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}))
	// Output: <nil>
}

func ExampleIdempotent() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(1, retrier.DialOptions()...)
	defer end()
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.Idempotent()) // this order carries a key that the server knows
	fmt.Println(err)
	// Output: <nil>
}

func ExamplePolicy() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	nightly, err := policy.Parse("nightly.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  retryPolicy: {maxAttempts: 5, initialBackoff: 0.05s, maxBackoff: 2s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(3, retrier.DialOptions()...)
	defer end()
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/ListOrders", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.Policy(nightly.Lookup("/acme.orders.v1.OrderService/ListOrders")))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithObserver() {
	set, err := policy.Load("../examples/orders/retry.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{
		Decision: func(_ context.Context, e interceptor.Event) {
			fmt.Printf("attempt %d: %v: %s in %v\n", e.Attempt, e.Code, e.Reason, e.Delay)
		},
		CallEnd: func(_ context.Context, e interceptor.Event) {
			fmt.Printf("%d attempts: %v: %s\n", e.Attempt, e.Code, e.Reason)
		},
		Diagnostic: func(policy.Diagnostic) {},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(9, retrier.DialOptions()...)
	defer end()
	_ = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	// Output:
	// attempt 1: Unavailable: retry in 0s
	// attempt 2: Unavailable: retry in 0s
	// attempt 3: Unavailable: retry in 0s
	// attempt 4: Unavailable: attempts_exhausted in 0s
	// 4 attempts: Unavailable: attempts_exhausted
}

// A selector of go-grpc-middleware leaves out calls that no policy should ever touch.
func ExampleRetrier_Unary() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	notHealth := selector.MatchFunc(func(_ context.Context, call interceptors.CallMeta) bool {
		return !strings.HasPrefix(call.FullMethod(), "/grpc.health.v1.")
	})
	conn, end := dial(1,
		grpc.WithDisableRetry(), // as Retrier.DialOptions does: gRPC must not retry too
		grpc.WithUnaryInterceptor(selector.UnaryClientInterceptor(retrier.Unary(), notHealth)))
	defer end()
	fmt.Println(conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}))
	// Output: <nil>
}

// tripped is the smallest breaker there is: one failure opens its circuit for good. One for real use is in
// examples/breaker.
type tripped bool

func (t *tripped) Open(context.Context, int) error {
	if *t {
		return errors.New("the service is down")
	}
	return nil
}

func (t *tripped) Allow(ctx context.Context, attempt int) (done func(error), err error) {
	if err := t.Open(ctx, attempt); err != nil {
		return nil, err
	}
	return func(err error) { *t = tripped(status.Code(err) == codes.Unavailable) }, nil
}

func ExampleWithBreaker() {
	breakers := map[string]*tripped{} // real ones need a lock
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet,
		interceptor.WithBreaker(func(target, _ string) interceptor.Gate {
			if breakers[target] == nil {
				breakers[target] = new(tripped)
			}
			return breakers[target]
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(9, retrier.DialOptions()...)
	defer end()
	for range 2 {
		err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
		if e, ok := errors.AsType[*interceptor.Error](err); ok {
			fmt.Printf("%d attempts, %s: %s\n", e.Attempts, e.Reason, status.Convert(err).Message())
		}
	}
	// Output:
	// 1 attempts, breaker_open: restarting
	// 0 attempts, breaker_open: circuit breaker: the service is down
}

// Nobody has declared CreateOrder safe; with a key that the server knows, this call is.
func ExampleIdempotencyKey() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On("*", testserver.Fail(codes.Unavailable).Pushback("0"), testserver.OK())
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.IdempotencyKey("order-4711"))
	fmt.Println(err)
	for _, attempt := range server.Attempts() {
		fmt.Println(attempt.Metadata.Get("idempotency-key"))
	}
	// Output:
	// <nil>
	// [order-4711]
	// [order-4711]
}

// retrying is the interceptor of a Retrier whose retries follow at once, for calls that no server sees.
func retrying(options ...interceptor.Option) grpc.UnaryClientInterceptor {
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.jobs.v1.JobService, method: Result}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.000000001s, maxBackoff: 0.000000001s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]}
`))
	if err != nil {
		panic(err)
	}
	r, err := interceptor.New(set, options...)
	if err != nil {
		panic(err)
	}
	return r.Unary()
}

// A reply may mean "not yet": then the call is made again, under the same policy and budget.
func ExampleWithClassifier() {
	unary := retrying(interceptor.WithClassifier(func(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
		if result, ok := reply.(*wrapperspb.StringValue); ok && err == nil && result.GetValue() == "" {
			return interceptor.VerdictNotYet
		}
		return interceptor.VerdictByCode
	}))
	attempts, result := 0, new(wrapperspb.StringValue)
	err := unary(context.Background(), "/acme.jobs.v1.JobService/Result", nil, result, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { // the server
			if attempts++; attempts == 3 {
				result.Value = "42"
			}
			return nil
		})
	fmt.Println(result.GetValue(), err, attempts)
	// Output: 42 <nil> 3
}

func ExampleWithDescriptors() {
	var api descriptorpb.FileDescriptorSet
	data, err := os.ReadFile("../examples/orders/orders.binpb") // made by "buf build"
	if err == nil {
		err = proto.Unmarshal(data, &api)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := protodesc.NewFiles(&api)
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", interceptor.WithDescriptors(files))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range retrier.State().Warnings {
		count, _, _ := strings.Cut(w.Message, ":")
		fmt.Println(count)
	}
	// Output: 1 method not declared idempotent
}

// Handlers that wrap an error keep the details: its text stays the server's, and errors.AsType finds attempts and reason.
func ExampleError() {
	set, err := policy.Parse("retry.yaml", []byte("{}")) // no policies: nothing is retried
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		fmt.Println(err)
		return
	}
	down := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return status.Error(codes.Unavailable, "the disk is full")
	}
	err = retrier.Unary()(context.Background(), "/acme.orders.v1.OrderService/GetOrder", nil, nil, nil, down)
	err = fmt.Errorf("order 7: %w", err)
	fmt.Println(err)
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println(e.Reason, e.Attempts)
	}
	// Output:
	// order 7: rpc error: code = Unavailable desc = the disk is full
	// non_retryable 1
}
