// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package payments_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/payments"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The package comment shows it.
func packageComment() (*grpc.Server, error) {
	answers, err := payments.NewAnswers(24*time.Hour, 100_000)
	if err != nil {
		return nil, err
	}
	return grpc.NewServer(grpc.ChainUnaryInterceptor(payments.Deduplicate(answers))), nil
}

var _ = packageComment

// The first answer is lost after the payment was made. The client retries, and gets the stored answer: the payment is made
// once.
func Example() {
	answers, err := payments.NewAnswers(24*time.Hour, 100_000)
	if err != nil {
		fmt.Println(err)
		return
	}
	bank := new(service)
	server, err := testserver.New(testserver.Register(bank.register),
		testserver.ServerOptions(grpc.ChainUnaryInterceptor(loseFirstAnswer(), payments.Deduplicate(answers))))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	set, err := policy.Parse(payments.File, payments.Policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set)
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

	var header metadata.MD
	number := new(wrapperspb.Int64Value)
	err = conn.Invoke(context.Background(), payments.Pay, wrapperspb.Int64(250), number, grpc.Header(&header))
	fmt.Println("payment", number.GetValue(), "error", err)
	fmt.Println("from memory:", header["idempotent-replayed"])
	fmt.Println("payments made:", bank.made)
	// Output:
	// the answer is lost: payment 1
	// payment 1 error <nil>
	// from memory: [true]
	// payments made: [250]
}

// loseFirstAnswer returns a server interceptor that loses the answer of the first call.
func loseFirstAnswer() grpc.UnaryServerInterceptor {
	var lost atomic.Bool
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := handle(ctx, req)
		if lost.CompareAndSwap(false, true) {
			fmt.Printf("the answer is lost: payment %d\n", reply.(*wrapperspb.Int64Value).GetValue())
			return nil, status.Error(codes.Unavailable, "connection reset")
		}
		return reply, err
	}
}
