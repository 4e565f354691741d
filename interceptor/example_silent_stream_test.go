// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A server hangs after two messages, and its connection works. With MessageTimeout, the watch continues in another attempt.
func ExampleResume_silentServer() {
	const watchOrders = "/acme.orders.v1.OrderService/WatchOrders"
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On(watchOrders, testserver.Stream(func(stream grpc.ServerStream) error {
		last := new(wrapperspb.Int64Value)
		if err := stream.RecvMsg(last); err != nil {
			return err
		}
		for number := last.GetValue() + 1; number <= 4; number++ {
			if number == 3 && last.GetValue() < 2 { // it hangs
				<-stream.Context().Done()
				return stream.Context().Err()
			}
			if err := stream.SendMsg(wrapperspb.Int64(number)); err != nil {
				return err
			}
		}
		return nil
	}))

	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent:  []string{watchOrders},
		RetryPolicy: policy.RetryPolicy{MaxAttempts: 5, MessageTimeout: 100 * time.Millisecond}, // three of the server's heartbeats
	})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	afterLast := func(last proto.Message) (proto.Message, bool) { return last, true } // a request is the number of the last message
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, watchOrders, interceptor.Resume(afterLast))
	if err != nil {
		panic(err)
	}
	_ = stream.SendMsg(wrapperspb.Int64(0))
	_ = stream.CloseSend()
	for {
		message := new(wrapperspb.Int64Value)
		if err := stream.RecvMsg(message); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("order", message.GetValue())
	}
	// Output:
	// order 1
	// order 2
	// order 3
	// order 4
	// EOF
}
