// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

const leaseJob = "/acme.jobs.v1.JobService/LeaseJob" // it may run twice: a lease that gets lost expires

// work leases jobs, one after the other, until ctx is done. A call that fails has been retried. The loop then waits before the next call: longer
// after each failure in a row, and at least as long as the server has asked for.
func work(ctx context.Context, conn *grpc.ClientConn, pause backoff.Config, do func(job string)) {
	failures, delay := 0, time.Duration(0)
	for {
		job := new(wrapperspb.StringValue)
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := conn.Invoke(call, leaseJob, &emptypb.Empty{}, job)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			do(job.GetValue())
			failures, delay = 0, 0
			continue
		}
		delay = pause.Delay(failures, delay, rand.Float64())
		failures++
		if e, ok := errors.AsType[*interceptor.Error](err); ok {
			delay = max(delay, e.RetryAfter)
		}
		fmt.Println(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// A worker calls a method for ever. The server is restarting for four attempts: the three of the first call, and one of the second.
func Example_worker() {
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On(leaseJob, testserver.Fail(codes.Unavailable, "restarting").Pushback("0").Times(4),
		testserver.OK(wrapperspb.String("job 1")), testserver.OK(wrapperspb.String("job 2")))

	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{leaseJob}})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	ctx, stop := context.WithCancel(context.Background()) // for yours: signal.NotifyContext
	defer stop()
	pause := backoff.Config{Initial: time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: backoff.JitterEqual} // for yours: 2 s to 1 min
	work(ctx, conn, pause, func(job string) {
		fmt.Println(job)
		if job == "job 2" {
			stop()
		}
	})
	// Output:
	// rpc error: code = Unavailable desc = restarting
	// job 1
	// job 2
}
