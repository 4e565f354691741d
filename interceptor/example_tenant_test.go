// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
)

type tenantKey struct{}

// A tenant whose calls fail spends its own budget and no other's: each large tenant has a Retrier, and the others share
// one. All use one connection.
func ExampleRetrier_Unary_perTenant() {
	retriers := map[string]*interceptor.Retrier{}
	for _, tenant := range []string{"", "acme", "globex"} { // as many as you can afford buckets for; "" is for the others
		retrier, err := interceptor.Load(orderFile, quiet)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer retrier.Close()
		retriers[tenant] = retrier
	}
	perTenant := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		retrier, ok := retriers[tenant]
		if !ok {
			retrier = retriers[""]
		}
		return retrier.Unary()(ctx, method, req, reply, cc, invoker, opts...)
	}
	conn, end := dial(2, grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(perTenant))
	defer end()

	ctx := context.WithValue(context.Background(), tenantKey{}, "acme")
	fmt.Println(conn.Invoke(ctx, readOrder, &emptypb.Empty{}, &emptypb.Empty{}))
	for _, tenant := range []string{"", "acme", "globex"} {
		fmt.Printf("%q: %d balances in use\n", tenant, len(retriers[tenant].State().Budgets))
	}
	// Output:
	// <nil>
	// "": 0 balances in use
	// "acme": 1 balances in use
	// "globex": 0 balances in use
}
