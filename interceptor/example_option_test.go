// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	readOrder = "/acme.orders.v1.OrderService/GetOrder" // the file names it: safe to repeat
	orderFile = "../examples/orders/retry.yaml"
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
	retrier, err := interceptor.Load(orderFile, quiet)
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
	retrier, err := interceptor.Load(orderFile, quiet)
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
	retrier, err := interceptor.Load(orderFile, quiet)
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
	retrier, err := interceptor.Load(orderFile, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(retrier.ServerOptions()...) // a service that calls others through the same Retrier
	server.Stop()
	// Output:
}

func ExampleAttemptFromContext() {
	retrier, err := interceptor.Load(orderFile, quiet)
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
	retrier, err := interceptor.Load(orderFile, quiet)
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
	retrier, err := interceptor.Load(orderFile, quiet, interceptor.WithRandom(func() float64 { return 0.5 }),
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
	retrier, err := interceptor.Load(orderFile, quiet, interceptor.WithStatsHandler(&counted)) // part of DialOptions
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
	retrier, err := interceptor.Load(orderFile, quiet)
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
	_, err := interceptor.Load(orderFile, quiet, restarting)
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
	_, err := interceptor.Load(orderFile, quiet, limited)
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
	_, err := interceptor.Load(orderFile, quiet, perTarget)
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithDefaultTimeout() {
	// A unary call whose context has no deadline ends after ten seconds, also if its server hangs. The key defaultTimeout of a file wins.
	_, err := interceptor.Load(orderFile, quiet, interceptor.WithDefaultTimeout(10*time.Second))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithMaxReplayBytes() {
	// All streams together keep at most 1 MiB for another attempt; beyond that they are committed.
	_, err := interceptor.Load(orderFile, quiet, interceptor.WithMaxReplayBytes(1<<20))
	fmt.Println(err)
	// Output: <nil>
}
