// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
)

func noRetries(plan) (setup, error) {
	return setup{options: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
}

// throttling lets a call pay for one retry by its success, so that it stops no call that is compared.
const throttling = `"retryThrottling": {"maxTokens": 1000, "tokenRatio": 1},`

// serviceConfig is gRPC's own retries.
func serviceConfig(extra string) func(plan) (setup, error) {
	return func(p plan) (setup, error) {
		backoff := strconv.FormatFloat(p.backoff.Seconds(), 'f', -1, 64)
		return setup{options: []grpc.DialOption{grpc.WithDefaultServiceConfig(fmt.Sprintf(`{%s
			"methodConfig": [{"name": [{"service": %q}], "retryPolicy": {
				"maxAttempts": %d, "initialBackoff": "%ss", "maxBackoff": "%ss", "backoffMultiplier": 1,
				"retryableStatusCodes": ["UNAVAILABLE"]}}]}`, extra, service, attempts, backoff, backoff))}}, nil
	}
}

// intercepted is a client with interceptors in the place of gRPC's retries.
func intercepted(unary grpc.UnaryClientInterceptor, more ...grpc.DialOption) setup {
	return setup{append(more, grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(unary)), unary}
}

func middlewareRetry(p plan) (setup, error) {
	options := []retry.CallOption{retry.WithMax(attempts), retry.WithBackoff(retry.BackoffLinear(p.backoff))}
	return intercepted(retry.UnaryClientInterceptor(options...),
		grpc.WithStreamInterceptor(retry.StreamClientInterceptor(options...))), nil
}

// failsafeKind is what a retry policy of failsafe-go is limited by.
type failsafeKind int

const (
	plain failsafeKind = iota
	withBudget
	withBreaker
)

// failsafeRetry is failsafe-go's retry policy. Neither the budget nor the breaker stops a call that is
// compared: one attempt in two may fail, and all calls may wait.
func failsafeRetry(kind failsafeKind) func(plan) (setup, error) {
	return func(p plan) (setup, error) {
		builder := failsafegrpc.NewRetryPolicyBuilder[any]().
			WithMaxAttempts(attempts).WithDelay(p.backoff).ReturnLastFailure()
		if kind == withBudget {
			builder = builder.WithBudget(budget.NewBuilder().WithMaxRate(1).Build())
		}
		policies := []failsafe.Policy[any]{builder.Build()}
		if kind == withBreaker {
			policies = append(policies, circuitbreaker.NewBuilder[any]().
				WithFailureRateThreshold(1, 1<<30, 10*time.Second).Build())
		}
		return intercepted(failsafegrpc.NewUnaryClientInterceptor(policies...)), nil
	}
}

// failsafeHedge is failsafe-go's hedge policy.
func failsafeHedge(p plan) (setup, error) {
	hedge := hedgepolicy.NewBuilderWithDelay[any](p.hedging).WithMaxHedges(1).Build()
	return intercepted(failsafegrpc.NewUnaryClientInterceptor(hedge)), nil
}
