// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// quiet receives the warnings of a policy, so that they don't go to the default logger.
var quiet = interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})

// ordersFile is examples/orders/retry.yaml.
const ordersFile = `
loadBalancingConfig: [{round_robin: {}}]
budgets:
  - name: orders
    bucket: {size: 50, perSuccess: 0.1}
methodConfig:
  - name:
      - {service: acme.orders.v1.OrderService, method: GetOrder}
      - {service: acme.orders.v1.OrderService, method: ListOrders}
    timeout: 2s
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.1s
      maxBackoff: 2s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE, RESOURCE_EXHAUSTED]
      jitter: FULL
      perAttemptTimeout: 0.2s
      budget: orders
      perCode:
        - {codes: [RESOURCE_EXHAUSTED], initialBackoff: 0.5s, maxBackoff: 10s}
  - name:
      - {service: acme.orders.v1.OrderService}
    timeout: 5s
    retryPolicy:
      maxAttempts: 3
      initialBackoff: 0.1s
      maxBackoff: 2s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE]
      budget: orders
`

// ordersPolicies returns the policies of ordersFile. A program with that file calls interceptor.Load or interceptor.Watch instead.
func ordersPolicies() *policy.Set {
	set, err := policy.Parse("retry.yaml", []byte(ordersFile))
	if err != nil {
		panic(err)
	}
	return set
}

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
	retrier, err := interceptor.New(ordersPolicies(), quiet)
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
	retrier, err := interceptor.New(ordersPolicies(), quiet)
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
	retrier, err := interceptor.New(ordersPolicies(), quiet)
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
		CallEnd: func(_ context.Context, e interceptor.CallEnd) {
			fmt.Printf("%d attempts: %v: %s\n", e.Attempts, e.Code, e.Reason)
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
	retrier, err := interceptor.New(ordersPolicies(), quiet)
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
	retrier, err := interceptor.New(ordersPolicies(), quiet,
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
	retrier, err := interceptor.New(ordersPolicies(), quiet)
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
		count, _, _ := strings.Cut(w.Message, ",")
		fmt.Println(count)
	}
	// Output: 1 method of acme.orders.v1.OrderService isn't declared idempotent
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

const (
	readOrder   = "/acme.orders.v1.OrderService/GetOrder" // the file names it: safe to repeat
	createOrder = "/acme.orders.v1.OrderService/CreateOrder"
	orderFile   = "../examples/orders/retry.yaml"
)

// read makes a call.
func read(conn *grpc.ClientConn, opts ...grpc.CallOption) error {
	return conn.Invoke(context.Background(), readOrder, &emptypb.Empty{}, &emptypb.Empty{}, opts...)
}

// outcome is how a call ended.
func outcome(err error) string {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		return fmt.Sprintf("%v after %d attempts: %s", status.Code(err), e.Attempts, e.Reason)
	}
	return fmt.Sprint(status.Code(err))
}

func ExampleWatch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop() // the file is followed until then
	retrier, err := interceptor.Watch(ctx, orderFile, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer retrier.Close()
	fmt.Println(filepath.Base(retrier.State().Policies.Source()), retrier.State().Err) // Err: why the file as it is now was refused
	// Output: retry.yaml <nil>
}

func ExampleMaxAttempts() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(9, retrier.DialOptions()...)
	defer end()
	fmt.Println(outcome(read(conn, interceptor.MaxAttempts(2))))
	// Output: Unavailable after 2 attempts: attempts_exhausted
}

// A service whose handler asks a cache, and does without it. The cache is down, and the service is then too busy for the request: it doesn't
// forbid its caller another attempt, as it would without the option.
func ExampleOptional() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	cache, end := dial(9, retrier.DialOptions()...)
	defer end()
	server, err := testserver.New(testserver.ServerOptions(retrier.ServerOptions()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		_ = cache.Invoke(ctx, readOrder, &emptypb.Empty{}, &emptypb.Empty{}, interceptor.Optional())
		return testserver.Fail(codes.Unavailable, "busy")
	}))
	conn, err := grpc.NewClient(server.Target(), server.DialOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	var trailer metadata.MD
	err = read(conn, grpc.Trailer(&trailer))
	fmt.Println(status.Code(err), trailer.Get("grpc-retry-pushback-ms"))
	// Output: Unavailable []
}

func ExampleRetrier_Reload() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(9, retrier.DialOptions()...)
	defer end()
	set, err := policy.Parse("from the configuration service", []byte(`{}`)) // no policies: nothing is retried
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := retrier.Reload(set); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome(read(conn)))
	// Output: Unavailable after 1 attempts: non_retryable
}

func ExampleRetrier_ServerOptions() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(retrier.ServerOptions()...) // a service that calls others through the same Retrier
	server.Stop()
	// Output:
}

func ExampleAttemptFromContext() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		number, hedge := interceptor.AttemptFromContext(ctx)
		fmt.Println("attempt", number, "hedge", hedge, status.Code(err))
		return err
	}
	conn, end := dial(1, append(retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
	defer end()
	_ = read(conn)
	// Output:
	// attempt 1 hedge false Unavailable
	// attempt 2 hedge false OK
}

func ExampleRetrier_State() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(1, retrier.DialOptions()...)
	defer end()
	_ = read(conn)
	for _, b := range retrier.State().Budgets {
		fmt.Fprintf(os.Stdout, "%s: %d granted, %d refused\n", b.Name, b.Granted, b.Refused)
	}
	// Output: orders: 1 granted, 0 refused
}

// attemptsOfCalls is a stats handler that counts what gRPC begins: attempts, since each is a call of its own to gRPC.
type attemptsOfCalls struct{ n atomic.Int64 }

func (*attemptsOfCalls) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*attemptsOfCalls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}
func (*attemptsOfCalls) HandleConn(context.Context, stats.ConnStats) {}
func (a *attemptsOfCalls) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.Begin); ok {
		a.n.Add(1)
	}
}

// A test has the same delays each time: with FULL jitter and a chance of 1/2, half of each backoff.
func ExampleWithRandom() {
	server, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On(readOrder, testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
	retrier, err := interceptor.New(ordersPolicies(), quiet, interceptor.WithRandom(func() float64 { return 0.5 }),
		interceptor.WithObserver(interceptor.Observer{Decision: func(_ context.Context, e interceptor.Event) { fmt.Println(e.Delay) }}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer retrier.Close()
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(read(conn))
	// Output:
	// 50ms
	// <nil>
}

func ExampleWithStatsHandler() {
	var counted attemptsOfCalls
	retrier, err := interceptor.New(ordersPolicies(), quiet, interceptor.WithStatsHandler(&counted)) // part of DialOptions
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(2, retrier.DialOptions()...)
	defer end()
	fmt.Println(read(conn), counted.n.Load())
	// Output: <nil> 3
}

func ExampleDisable() {
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(9, retrier.DialOptions()...)
	defer end()
	fmt.Println(outcome(read(conn, interceptor.Disable()))) // as if there were no Retrier
	// Output: Unavailable
}

func ExampleVerdict() {
	// A server that says INTERNAL when it is restarting.
	restarting := interceptor.WithClassifier(func(_ context.Context, _ string, _ any, err error) interceptor.Verdict {
		if s := status.Convert(err); s.Code() == codes.Internal && s.Message() == "restarting" {
			return interceptor.VerdictRetry
		}
		return interceptor.VerdictByCode
	})
	_, err := interceptor.New(ordersPolicies(), quiet, restarting)
	fmt.Println(err)
	// Output: <nil>
}

// A server names its delay in a header of its own, in seconds.
func ExampleTrailerFromContext() {
	limited := interceptor.WithClassifier(func(ctx context.Context, _ string, _ any, _ error) (v interceptor.Verdict) {
		reset := interceptor.TrailerFromContext(ctx)["x-ratelimit-reset"]
		if seconds, err := strconv.Atoi(strings.Join(reset, "")); err == nil {
			v.Delay = time.Duration(seconds) * time.Second // the policy still decides by the code whether to retry
		}
		return v
	})
	_, err := interceptor.New(ordersPolicies(), quiet, limited)
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithBudget_perTarget() {
	// Each target has a budget of its own, which no other Retrier shares.
	perTarget := interceptor.WithBudget("orders", func(string) budget.Budget {
		config := budget.Default()
		config.Size = 20
		b, err := budget.New(config)
		if err != nil {
			return nil // the target's calls get no extra attempt
		}
		return b
	})
	_, err := interceptor.New(ordersPolicies(), quiet, perTarget)
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithDefaultTimeout() {
	// A unary call whose context has no deadline ends after ten seconds, also if its server hangs. The key defaultTimeout of a file wins.
	_, err := interceptor.New(ordersPolicies(), quiet, interceptor.WithDefaultTimeout(10*time.Second))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithMaxReplayBytes() {
	// All streams together keep at most 1 MiB for another attempt; beyond that they are committed.
	_, err := interceptor.New(ordersPolicies(), quiet, interceptor.WithMaxReplayBytes(1<<20))
	fmt.Println(err)
	// Output: <nil>
}

type tenantKey struct{}

// A tenant whose calls fail spends its own budget and no other's: each large tenant has a Retrier, and the others share
// one. All use one connection.
func ExampleRetrier_Unary_perTenant() {
	retriers := map[string]*interceptor.Retrier{}
	for _, tenant := range []string{"", "acme", "globex"} { // as many as you can afford buckets for; "" is for the others
		retrier, err := interceptor.New(ordersPolicies(), quiet)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer retrier.Close()
		retriers[tenant] = retrier
	}
	perTenant := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		retrier, ok := retriers[tenant]
		if !ok {
			retrier = retriers[""]
		}
		return retrier.Unary()(ctx, method, req, reply, cc, invoker, opts...)
	}
	conn, end := dial(2, grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(perTenant))
	defer end()

	ctx := context.WithValue(context.Background(), tenantKey{}, "acme")
	fmt.Println(conn.Invoke(ctx, readOrder, &emptypb.Empty{}, &emptypb.Empty{}))
	for _, tenant := range []string{"", "acme", "globex"} {
		fmt.Printf("%q: %d balances in use\n", tenant, len(retriers[tenant].State().Budgets))
	}
	// Output:
	// <nil>
	// "": 0 balances in use
	// "acme": 1 balances in use
	// "globex": 0 balances in use
}

const listOrders = "/acme.orders.v1.OrderService/ListOrders"

// dialStreams connects, with the policies of examples/orders, to a server whose attempts go by the
// script.
func dialStreams(script ...testserver.Step) (conn *grpc.ClientConn, end func()) {
	srv, err := testserver.New()
	if err != nil {
		panic(err)
	}
	srv.On("*", script...)
	retrier, err := interceptor.New(ordersPolicies(), quiet)
	if err != nil {
		panic(err)
	}
	conn, err = grpc.NewClient(srv.Target(), append(retrier.DialOptions(), srv.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	return conn, func() { _ = conn.Close(); srv.Close() }
}

// hiccup fails at once, and lets the client come back at once.
func hiccup() testserver.Step { return testserver.Fail(codes.Unavailable).Pushback("0") }

func ExampleRetrier_Stream_server() {
	conn, end := dialStreams(hiccup(), testserver.OK(wrapperspb.String("order 1"), wrapperspb.String("order 2")))
	defer end()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, listOrders)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = stream.SendMsg(wrapperspb.String("all of today"))
	_ = stream.CloseSend()
	fmt.Println(receive(stream)) // the first attempt failed before a message: the application doesn't notice
	// Output: [order 1 order 2] EOF
}

func ExampleRetrier_Stream_client() {
	conn, end := dialStreams(hiccup(), testserver.Stream(func(stream grpc.ServerStream) error {
		orders := 0
		for stream.RecvMsg(new(wrapperspb.StringValue)) == nil {
			orders++
		}
		return stream.SendMsg(wrapperspb.String(fmt.Sprint(orders, " orders imported")))
	}))
	defer end()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true}, listOrders)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		_ = stream.SendMsg(wrapperspb.String("order " + strconv.Itoa(i))) // kept, and sent again
	}
	_ = stream.CloseSend()
	reply := new(wrapperspb.StringValue)
	fmt.Println(stream.RecvMsg(reply), reply.GetValue())
	// Output: <nil> 3 orders imported
}

func ExampleRetrier_Stream_bidirectional() {
	conn, end := dialStreams(hiccup(), testserver.Stream(func(stream grpc.ServerStream) error {
		message := new(wrapperspb.StringValue)
		for stream.RecvMsg(message) == nil {
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
		return nil
	}))
	defer end()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, listOrders)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"ping", "pong"} {
		_ = stream.SendMsg(wrapperspb.String(text))
		reply := new(wrapperspb.StringValue)
		fmt.Println(stream.RecvMsg(reply), reply.GetValue())
	}
	_ = stream.CloseSend()
	fmt.Println(receive(stream))
	// Output:
	// <nil> ping
	// <nil> pong
	// [] EOF
}

func ExampleResume() {
	conn, end := dialStreams(
		testserver.OK(wrapperspb.String("1"), wrapperspb.String("2")).Then(hiccup()), // cut after two messages
		testserver.OK(wrapperspb.String("3"), wrapperspb.String("4")))
	defer end()
	goOn := func(last proto.Message) (proto.Message, bool) {
		return wrapperspb.String("after " + last.(*wrapperspb.StringValue).GetValue()), true
	}
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, listOrders, interceptor.Resume(goOn))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = stream.SendMsg(wrapperspb.String("from the start"))
	_ = stream.CloseSend()
	fmt.Println(receive(stream))
	// Output: [1 2 3 4] EOF
}

// tokenFile has one retry after UNAUTHENTICATED, at once.
const tokenFile = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService}, {service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.1s
      maxBackoff: 1s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE, UNAUTHENTICATED]
      perCode:
        - {codes: [UNAUTHENTICATED], maxAttempts: 2, initialBackoff: 0.001s, maxBackoff: 0.001s}
`

// accessToken is one that is fetched when it is needed, and again when a server has refused it.
type accessToken struct {
	fetch func(context.Context) (string, error)

	mu    sync.Mutex
	value string // "" if there is none
}

// unary is an inner interceptor: it runs once an attempt.
func (t *accessToken) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	value, err := t.get(ctx)
	if err != nil {
		return err
	}
	err = invoke(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+value), method, req, reply, cc, opts...)
	attempt, _ := interceptor.AttemptFromContext(ctx)
	if attempt == 1 && status.Code(err) == codes.Unauthenticated { // a token that is refused again hasn't expired
		t.drop(value)
	}
	return err
}

func (t *accessToken) get(ctx context.Context) (value string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == "" {
		t.value, err = t.fetch(ctx)
	}
	return t.value, err
}

// drop forgets a token, unless another call has fetched a new one.
func (t *accessToken) drop(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == value {
		t.value = ""
	}
}

// A token has expired: the server refuses the call, the client fetches another token, and the second attempt succeeds.
func ExampleAttemptFromContext_token() {
	set, err := policy.Parse("retry.yaml", []byte(tokenFile))
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set, quiet)
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
	server.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		if slices.Equal(metadata.ValueFromIncomingContext(ctx, "authorization"), []string{"Bearer token-2"}) {
			return testserver.OK(&emptypb.Empty{})
		}
		return testserver.Fail(codes.Unauthenticated, "the token has expired")
	}))

	fetched := 0
	tokens := &accessToken{fetch: func(context.Context) (string, error) {
		fetched++
		return "token-" + strconv.Itoa(fetched), nil
	}}
	options := slices.Concat(retrier.DialOptions(), server.DialOptions(), []grpc.DialOption{grpc.WithChainUnaryInterceptor(tokens.unary)})
	conn, err := grpc.NewClient(server.Target(), options...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	for _, method := range []string{createOrder, readOrder, readOrder} { // CreateOrder isn't declared idempotent
		err := conn.Invoke(context.Background(), method, &emptypb.Empty{}, &emptypb.Empty{})
		fmt.Println(status.Code(err), "with token", fetched)
	}
	// Output:
	// Unauthenticated with token 1
	// OK with token 2
	// OK with token 2
}

// A server is down for two attempts of a call.
func ExampleDefault() {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent: []string{"/acme.orders.v1.OrderService/GetOrder"}, // generated code: orderspb.OrderService_GetOrder_FullMethodName
	}, quiet, interceptor.WithObserver(interceptor.Observer{Attempt: func(_ context.Context, e interceptor.Event) {
		fmt.Printf("attempt %d: %v\n", e.Attempt, e.Code)
	}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(2, retrier.DialOptions()...) // grpc.NewClient(target, retrier.DialOptions()...)
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	fmt.Println("the call:", err)
	// Output:
	// attempt 1: Unavailable
	// attempt 2: Unavailable
	// attempt 3: OK
	// the call: <nil>
}

// receive returns the messages and the end of a stream.
func receive(stream grpc.ClientStream) (texts []string, err error) {
	for {
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil {
			return texts, err
		}
		texts = append(texts, m.GetValue())
	}
}
