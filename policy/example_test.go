// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// The package comment shows it.
func packageComment() (*interceptor.Retrier, error) {
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 2s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`))
	if err != nil {
		return nil, err
	}
	return interceptor.New(set)
}

var _ = packageComment

// Parse reports all errors in a file at once, with their place and the remedy.
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

func ExampleLoad() {
	policies, err := policy.Load("testdata/good/design.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []string{"/acme.orders.v1.OrderService/GetOrder", "/acme.orders.v1.OrderService/PutOrder"} {
		if p := policies.Lookup(method); p != nil {
			fmt.Println(method, p.Spec().Retry.MaxAttempts, p.Spec().Retry.Budget)
		} else {
			fmt.Println(method, "has no policy")
		}
	}
	// Output:
	// /acme.orders.v1.OrderService/GetOrder 4 orders
	// /acme.orders.v1.OrderService/PutOrder has no policy
}

func ExampleNewSet() {
	retry := policy.RetrySpec{
		MaxAttempts:          3,
		Backoff:              policy.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2},
		RetryableStatusCodes: []codes.Code{codes.Unavailable},
	}
	retry.Budget = "orders"
	_, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []string{"/acme.orders.v1.OrderService/GetOrder"},
		Spec:  policy.Spec{Retry: &retry},
	}}})
	fmt.Println(err)
	// Output:
	// methodConfig[0].retryPolicy.budget: "orders": no budget has that name; declare it under budgets, or write NONE for no limit
}

func ExampleNew() {
	retry := policy.RetrySpec{
		MaxAttempts:          3,
		Backoff:              policy.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2},
		RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.Aborted},
	}
	p, err := policy.New(policy.Spec{Retry: &retry, Idempotency: "ASSUME"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Spec().Retry.MaxAttempts, p.Spec().Retry.RetryableStatusCodes)
	// Output: 3 [Aborted Unavailable]
}

// A program may give single calls a policy that differs from the file's in one setting (interceptor.Policy).
func ExamplePolicy_Spec() {
	set, err := policy.Load("../examples/orders/retry.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := set.Lookup("/acme.orders.v1.OrderService/GetOrder").Spec() // a copy
	spec.Timeout = time.Minute
	patient, err := policy.New(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(patient.Spec().Timeout, patient.Spec().Retry.MaxAttempts) // the rest is the file's
	// Output: 1m0s 4
}

// A program may change what a file says.
func ExampleSet_Config() {
	set, err := policy.Load("../examples/orders/retry.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	config := set.Config() // a copy
	config.Mode = policy.ModeObserve
	if set, err = policy.NewSet(config); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Config().Mode)
	// Output: OBSERVE
}

// A switch by hand and the policy file may both have a mode.
func ExampleStrictestMode() {
	fmt.Println(policy.StrictestMode(policy.ModeEnforce, policy.ModeObserve))
	// Output: OBSERVE
}
