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

// dialStreams connects, with the policies of examples/orders, to a server whose attempts go by the
// script.
func dialStreams(script ...testserver.Step) (conn *grpc.ClientConn, end func()) {
	srv, err := testserver.New()
	if err != nil {
		panic(err)
	}
	srv.On("*", script...)
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
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
