// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

const listOrders = "/acme.orders.v1.OrderService/ListOrders"

// dialStreams connects to a server whose attempts go by the script.
func dialStreams(script ...testserver.Step) (conn *grpc.ClientConn, end func()) {
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	server.On("*", script...)
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{listOrders}})
	if err != nil {
		panic(err)
	}
	conn, err = grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	return conn, func() { _ = conn.Close(); server.Close() }
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

// The first attempt fails before its first message. The program doesn't notice.
func ExampleRetrier_Stream_server() {
	conn, end := dialStreams(
		testserver.Fail(codes.Unavailable).Pushback("0"), // it may be retried at once
		testserver.OK(wrapperspb.String("order 1"), wrapperspb.String("order 2")))
	defer end()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, listOrders)
	if err != nil {
		panic(err)
	}
	_ = stream.SendMsg(wrapperspb.String("all of today"))
	_ = stream.CloseSend()
	fmt.Println(receive(stream))
	// Output: [order 1 order 2] EOF
}

// The messages are kept, and sent again to the second attempt.
func ExampleRetrier_Stream_client() {
	conn, end := dialStreams(
		testserver.Fail(codes.Unavailable).Pushback("0"),
		testserver.Stream(func(stream grpc.ServerStream) error {
			orders := 0
			for stream.RecvMsg(new(wrapperspb.StringValue)) == nil {
				orders++
			}
			return stream.SendMsg(wrapperspb.String(fmt.Sprint(orders, " orders imported")))
		}))
	defer end()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true}, listOrders)
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		_ = stream.SendMsg(wrapperspb.String("order " + strconv.Itoa(i)))
	}
	_ = stream.CloseSend()
	fmt.Println(receive(stream))
	// Output: [3 orders imported] EOF
}

// The first attempt fails before its first message. From the first message on, the stream isn't retried.
func ExampleRetrier_Stream_bidirectional() {
	conn, end := dialStreams(
		testserver.Fail(codes.Unavailable).Pushback("0"),
		testserver.Stream(func(stream grpc.ServerStream) error {
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
		panic(err)
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

// A stream is cut after two messages. It continues after the last one.
func ExampleResume() {
	conn, end := dialStreams(
		testserver.OK(wrapperspb.String("1"), wrapperspb.String("2")).Then(testserver.Fail(codes.Unavailable).Pushback("0")),
		testserver.OK(wrapperspb.String("3"), wrapperspb.String("4")))
	defer end()
	goOn := func(last proto.Message) (proto.Message, bool) {
		return wrapperspb.String("after " + last.(*wrapperspb.StringValue).GetValue()), true
	}
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, listOrders, interceptor.Resume(goOn))
	if err != nil {
		panic(err)
	}
	_ = stream.SendMsg(wrapperspb.String("from the start"))
	_ = stream.CloseSend()
	fmt.Println(receive(stream))
	// Output: [1 2 3 4] EOF
}
