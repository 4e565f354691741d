// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"embed"
	"fmt"

	"github.com/stagger-go/stagger/policy"
)

// All that is wrong with a file is said at once, with its place and what would be right.
func ExampleParse() {
	_, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy:
      maxAttempts: 1
      initialBackoff: 50ms
      maxBackoff: 2s
      backoffMultiplier: 2
      retryableStatusCode: [UNAVAILABLE]
`))
	fmt.Println(err)
	// Output:
	// retry.yaml:5:20: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2, since it counts the first attempt; for one attempt leave the policy out
	// retry.yaml:6:23: methodConfig[0].retryPolicy.initialBackoff: 50ms: must be in seconds: "0.05s"
	// retry.yaml:9:7: methodConfig[0].retryPolicy.retryableStatusCode: unknown key; did you mean retryableStatusCodes?
}

//go:embed testdata/good/design.yaml
var files embed.FS

// A policy file may be part of the program.
func ExampleLoadFS() {
	policies, err := policy.LoadFS(files, "testdata/good/design.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(policies.Lookup("/acme.orders.v1.OrderService/GetOrder").MaxAttempts())
	// Output: 4
}

func ExampleLoad() {
	policies, err := policy.Load("testdata/good/design.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []string{"/acme.orders.v1.OrderService/GetOrder", "/acme.orders.v1.OrderService/PutOrder"} {
		if p := policies.Lookup(method); p != nil {
			fmt.Println(method, p.MaxAttempts(), p.Budget())
		} else {
			fmt.Println(method, "has no policy")
		}
	}
	// Output:
	// /acme.orders.v1.OrderService/GetOrder 4 orders
	// /acme.orders.v1.OrderService/PutOrder has no policy
}

func ExampleNewSet() {
	retry := policy.DefaultRetry()
	retry.Budget = "orders"
	_, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []policy.Name{{Service: "acme.orders.v1.OrderService", Method: "GetOrder"}},
		Spec:  policy.Spec{Retry: &retry},
	}}})
	fmt.Println(err)
	// Output:
	// methodConfig[0].retryPolicy.budget: "orders": no budget has that name; declare it under budgets, or write NONE for no limit
}
