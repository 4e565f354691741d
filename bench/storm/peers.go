// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
)

// throttling is the example of gRFC A6.
const throttling = `"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},`

// builtIn is gRPC's own retries, which know no attempt timeout.
func builtIn(extra string) func(time.Duration) ([]grpc.DialOption, error) {
	config := fmt.Sprintf(`{
		"loadBalancingConfig": [{"round_robin": {}}], %s
		"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": %d, "initialBackoff": "%gs", "maxBackoff": "%gs", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`,
		extra, attempts, initialBackoff.Seconds(), maxBackoff.Seconds())
	return func(time.Duration) ([]grpc.DialOption, error) {
		return []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}, nil
	}
}

// middleware is go-grpc-middleware's retry interceptor. It retries UNAVAILABLE and
// RESOURCE_EXHAUSTED, and the attempts that time out.
func middleware(attemptTimeout time.Duration) ([]grpc.DialOption, error) {
	return []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithUnaryInterceptor(retry.UnaryClientInterceptor(
			retry.WithMax(attempts),
			retry.WithBackoff(retry.BackoffExponentialWithJitter(initialBackoff, spread)),
			retry.WithPerRetryTimeout(attemptTimeout),
		)),
	}, nil
}

// failsafeRetry is failsafe-go's retry policy for gRPC, around its timeout policy. It retries
// UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED.
func failsafeRetry(limited bool) func(time.Duration) ([]grpc.DialOption, error) {
	return func(attemptTimeout time.Duration) ([]grpc.DialOption, error) {
		builder := failsafegrpc.NewRetryPolicyBuilder[any]().
			HandleErrors(timeout.ErrExceeded).
			WithMaxAttempts(attempts).
			WithBackoff(initialBackoff, maxBackoff).
			WithJitterFactor(spread).
			ReturnLastFailure()
		if limited { // the same part of the calls that stagger's budget allows
			builder = builder.WithBudget(budget.NewBuilder().WithMaxRate(0.1).Build())
		}
		policies := []failsafe.Policy[any]{builder.Build()}
		if attemptTimeout > 0 {
			policies = append(policies, timeout.New[any](attemptTimeout))
		}
		return []grpc.DialOption{
			grpc.WithDisableRetry(),
			grpc.WithUnaryInterceptor(failsafegrpc.NewUnaryClientInterceptor(policies...)),
		}, nil
	}
}
