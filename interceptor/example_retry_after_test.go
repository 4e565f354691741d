// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// A long poll comes back when the call says, and ends when it must not come back.
func ExampleError_retryAfter() {
	busy := testserver.Fail(codes.Unavailable, "busy").Pushback("5") // milliseconds
	conn, end := dialStreams(busy.Times(8), testserver.OK(wrapperspb.String("shipped")).Times(1), testserver.Fail(codes.NotFound, "no such order"))
	defer end()
	poll := func(ctx context.Context) (status string, err error) {
		for {
			status, err = order(ctx, conn)
			failed, ok := errors.AsType[*interceptor.Error](err)
			if !ok || failed.RetryAfter == 0 {
				return status, err // OK, or not to be repeated
			}
			select {
			case <-time.After(failed.RetryAfter):
			case <-ctx.Done():
				return "", err
			}
		}
	}
	fmt.Println(poll(context.Background()))
	_, err := poll(context.Background())
	fmt.Println(err)
	// Output:
	// shipped <nil>
	// rpc error: code = NotFound desc = no such order
}

// order asks for the state of an order.
func order(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	reply := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, get, wrapperspb.String("order 7"), reply)
	return reply.GetValue(), err
}
