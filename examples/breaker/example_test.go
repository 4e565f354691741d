// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/examples/breaker"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A server is down. After five failures in a row, nothing is retried; then the breaker ends the calls.
func Example() {
	server, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On("*", testserver.Fail(codes.Unavailable, "down").Pushback("0")) // no wait in an example

	set, err := policy.Parse("retry.yaml", []byte(retries))
	if err != nil {
		fmt.Println(err)
		return
	}
	breakers := new(breaker.Breakers)
	retrier, err := interceptor.New(set, interceptor.WithBreaker(breakers.For))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	last := ""
	for i := range 100 {
		err := call(context.Background(), conn)
		if e, ok := errors.AsType[*interceptor.Error](err); ok {
			line := fmt.Sprintf("attempts: %d, %s: %s", e.Attempts, e.Reason, status.Convert(err).Message())
			if line != last {
				fmt.Printf("call %d: %s\n", i+1, line)
			}
			last = line
		}
	}
	fmt.Println("requests:", len(server.Attempts()))
	// Output:
	// call 1: attempts: 4, attempts_exhausted: down
	// call 2: attempts: 1, failing_everywhere: down
	// call 17: attempts: 1, breaker_open: down
	// call 18: attempts: 0, breaker_open: circuit breaker: circuit breaker is open
	// requests: 20
}
