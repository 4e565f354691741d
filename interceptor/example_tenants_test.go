// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

type tenantKey struct{}

// A tenant whose calls fail spends its own budget and no other's. Each large tenant has a Retrier, and the others share one. All use one
// connection.
func ExampleRetrier_Unary_perTenant() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	retriers := map[string]*interceptor.Retrier{}
	for _, tenant := range []string{"", "acme", "globex"} { // "" is for the others
		retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
		if err != nil {
			panic(err)
		}
		defer retrier.Close()
		retriers[tenant] = retrier
	}
	perTenant := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		retrier, ok := retriers[tenant]
		if !ok {
			retrier = retriers[""]
		}
		return retrier.Unary()(ctx, method, req, reply, cc, invoke, opts...)
	}

	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On("*", testserver.Fail(codes.Unavailable).Pushback("0").Times(2), testserver.OK())
	conn, err := grpc.NewClient(server.Target(), append(server.DialOptions(), grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(perTenant))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), tenantKey{}, "acme"), 10*time.Second)
	defer cancel()
	fmt.Println(conn.Invoke(ctx, getOrder, &emptypb.Empty{}, &emptypb.Empty{}))
	for _, tenant := range []string{"", "acme", "globex"} {
		fmt.Printf("%q: %d balances in use\n", tenant, len(retriers[tenant].State().Budgets))
	}
	// Output:
	// <nil>
	// "": 0 balances in use
	// "acme": 1 balances in use
	// "globex": 0 balances in use
}
