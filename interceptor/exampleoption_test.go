// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// retrying is the interceptor of a Retrier whose retries follow at once, for calls that no server sees.
func retrying(options ...interceptor.Option) grpc.UnaryClientInterceptor {
	retry := policy.DefaultRetry()
	retry.Backoff = policy.Backoff{Initial: 1, Max: 1, Multiplier: 1}
	set, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []policy.Name{{Service: "acme.jobs.v1.JobService", Method: "Result"}},
		Spec:  policy.Spec{Retry: &retry},
	}}})
	if err != nil {
		panic(err)
	}
	r, err := interceptor.New(set, options...)
	if err != nil {
		panic(err)
	}
	return r.Unary()
}

// A reply may mean "not yet": then the call is made again, under the same policy and budget.
func ExampleWithClassifier() {
	unary := retrying(interceptor.WithClassifier(func(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
		if result, ok := reply.(*wrapperspb.StringValue); ok && err == nil && result.GetValue() == "" {
			return interceptor.VerdictRetry
		}
		return interceptor.VerdictByCode
	}))
	attempts, result := 0, new(wrapperspb.StringValue)
	err := unary(context.Background(), "/acme.jobs.v1.JobService/Result", nil, result, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { // the server
			if attempts++; attempts == 3 {
				result.Value = "42"
			}
			return nil
		})
	fmt.Println(result.GetValue(), err, attempts)
	// Output: 42 <nil> 3
}
