// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// workers are as many places as a server has workers.
type workers chan struct{}

func (w workers) take(ctx context.Context, _ string) (release func(), err error) {
	most := cap(w)
	if interceptor.CriticalityFromContext(ctx) == policy.CriticalitySheddable {
		most /= 2 // the other half is for the other calls
	}
	if len(w) >= most {
		return nil, errBusy
	}
	select {
	case w <- struct{}{}:
		return func() { <-w }, nil
	default:
		return nil, errBusy // others were faster
	}
}

var errBusy = status.Error(codes.ResourceExhausted, "all workers are busy")

// A server refuses SHEDDABLE calls while half of its workers are busy, and tells clients that they were not processed.
func ExampleRefuse() {
	retrier, err := interceptor.Load(orderFile, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := make(workers, 2)
	w <- struct{}{} // one of them is busy
	options := retrier.ServerOptions(interceptor.IncomingCriticality(policy.CriticalityDefault), interceptor.Refuse(w.take))
	server, err := testserver.New(testserver.ServerOptions(options...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On("*", testserver.OK(&emptypb.Empty{}))
	set, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []string{"/"}, Spec: policy.Spec{SendCriticality: true},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := interceptor.New(set, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient(server.Target(), append(server.DialOptions(), client.DialOptions()...)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	for _, c := range []policy.Criticality{policy.CriticalityDefault, policy.CriticalitySheddable} {
		fmt.Println(c, status.Code(conn.Invoke(interceptor.ContextWithCriticality(context.Background(), c), readOrder, &emptypb.Empty{}, &emptypb.Empty{})))
	}
	// Output:
	// DEFAULT OK
	// SHEDDABLE ResourceExhausted
}
