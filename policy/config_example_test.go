// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/policy"
)

// A policy in Go. Its text can be kept as a file, which other gRPC clients read as well.
func ExampleNew() {
	set, err := policy.New(policy.Config{
		LoadBalancingConfig: `[{"round_robin": {}}]`,
		MethodConfig: []policy.MethodConfig{{
			Name:    []string{"/acme.orders.v1.OrderService/GetOrder"}, // naming a method declares it idempotent
			Timeout: 2 * time.Second,
			RetryPolicy: &policy.RetryPolicy{
				MaxAttempts:          4,
				RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.ResourceExhausted},
				Jitter:               backoff.JitterEqual,
				PerAttemptTimeout:    400 * time.Millisecond,
			},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set)
	// Output:
	// {
	//   "methodConfig": [
	//     {
	//       "name": [
	//         {
	//           "service": "acme.orders.v1.OrderService",
	//           "method": "GetOrder"
	//         }
	//       ],
	//       "timeout": "2s",
	//       "retryPolicy": {
	//         "maxAttempts": 4,
	//         "initialBackoff": "0.1s",
	//         "maxBackoff": "1s",
	//         "backoffMultiplier": 2,
	//         "retryableStatusCodes": [
	//           "UNAVAILABLE",
	//           "RESOURCE_EXHAUSTED"
	//         ],
	//         "jitter": "EQUAL",
	//         "perAttemptTimeout": "0.4s"
	//       }
	//     }
	//   ],
	//   "loadBalancingConfig": [
	//     {
	//       "round_robin": {}
	//     }
	//   ]
	// }
}

// An error names the field as the file's key.
func ExampleNew_error() {
	_, err := policy.New(policy.Config{MethodConfig: []policy.MethodConfig{{
		Name:        []string{"/acme.orders.v1.OrderService/GetOrder"},
		RetryPolicy: &policy.RetryPolicy{MaxAttempts: 1},
	}}})
	fmt.Println(err)
	// Output: policy.New: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2, since it counts the first attempt; for one attempt leave the policy out
}
