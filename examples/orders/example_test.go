// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package orders_test

import (
	"fmt"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/policy"
)

// The policy of each method: the number of attempts, and what declares it idempotent.
func Example() {
	set, err := policy.Parse(orders.File, orders.Policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []string{orders.GetOrder, orders.ListOrders, orders.CreateOrder} {
		p := set.Lookup(method)
		fmt.Printf("%s: %d attempts, idempotency: %v\n", method, p.MaxAttempts(), p.Idempotency())
	}
	// Output:
	// /acme.orders.v1.OrderService/GetOrder: 4 attempts, idempotency: ASSUME
	// /acme.orders.v1.OrderService/ListOrders: 4 attempts, idempotency: ASSUME
	// /acme.orders.v1.OrderService/CreateOrder: 3 attempts, idempotency: DECLARED
}
