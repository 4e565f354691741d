// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// operation is what is counted: a call, or a stream with all its messages. Only calls are made by several
// goroutines at a time.
type operation func() error

// stub makes calls of a client's interceptor with nothing behind it but the answer, and
// counts its attempts.
func stub(c setup, answer answer) (do operation, attempts *atomic.Int64) {
	attempts = new(atomic.Int64)
	invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		return answer(ctx, attempts.Add(1))
	}
	ctx, options := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
	request, reply := new(wrapperspb.StringValue), new(wrapperspb.StringValue)
	return func() error { return c.unary(ctx, method, request, reply, nil, invoke, options...) }, attempts
}

// connected makes calls of a connection.
func connected(conn *grpc.ClientConn) operation {
	in := connectedIn(conn)
	return func() error { return in(context.Background()) }
}

func connectedIn(conn *grpc.ClientConn) func(context.Context) error {
	request, options := wrapperspb.String("7"), []grpc.CallOption{grpc.StaticMethod()}
	return func(ctx context.Context) error {
		return conn.Invoke(ctx, method, request, new(wrapperspb.StringValue), options...)
	}
}

// repeat carries out an operation n times, in several goroutines. It returns the first error that it sees.
func repeat(do operation, goroutines int) func(n int) error {
	if goroutines == 1 {
		return func(n int) error {
			for range n {
				if err := do(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	one := repeat(do, 1)
	return func(n int) error {
		var (
			wg    sync.WaitGroup
			once  sync.Once
			first error
		)
		for i := range goroutines {
			wg.Go(func() {
				if err := one(n/goroutines + min(1, max(0, n%goroutines-i))); err != nil {
					once.Do(func() { first = err })
				}
			})
		}
		wg.Wait()
		return first
	}
}
