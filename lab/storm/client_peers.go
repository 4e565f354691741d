// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/balancer"
	"github.com/stagger-go/stagger/internal/tools/outage"
)

// throttling is the example of gRFC A6.
const throttling = `"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},`

// builtIn is gRPC's own retries, which know no attempt timeout. They go elsewhere if each call has a context for its
// backends.
func builtIn(extra string, elsewhere bool) func(storm) (outage.Options, error) {
	config := fmt.Sprintf(`{
		"loadBalancingConfig": %%s, %s
		"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": %d, "initialBackoff": "%gs", "maxBackoff": "%gs", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`,
		extra, attempts, initialBackoff.Seconds(), maxBackoff.Seconds())
	note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(balancer.NewContext(ctx), method, req, reply, cc, opts...)
	}
	return func(s storm) (outage.Options, error) {
		dial := []grpc.DialOption{grpc.WithDefaultServiceConfig(fmt.Sprintf(config, s.balancing(elsewhere)))}
		if elsewhere {
			dial = append(dial, grpc.WithUnaryInterceptor(note))
		}
		return outage.Options{Dial: dial}, nil
	}
}

// intercepted is a client with an interceptor in the place of gRPC's retries.
func intercepted(unary grpc.UnaryClientInterceptor) outage.Options {
	return outage.Options{Dial: []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(unary)}}
}

// middleware is go-grpc-middleware's retry interceptor. It retries UNAVAILABLE and
// RESOURCE_EXHAUSTED, and the attempts that time out.
func middleware(s storm) (outage.Options, error) {
	return intercepted(retry.UnaryClientInterceptor(
		retry.WithMax(attempts),
		retry.WithBackoff(retry.BackoffExponentialWithJitter(initialBackoff, jitter)),
		retry.WithPerRetryTimeout(s.attemptTimeout),
	)), nil
}

// failsafeKind is what stands inside of a retry policy of failsafe-go.
type failsafeKind int

const (
	plain       failsafeKind = iota
	withBudget               // the same part of the calls that stagger's budget allows
	withBreaker              // opens for half a second when half of 20 attempts or more fail in a second
	withHedge                // one for each attempt, in the place of the attempt timeout
)

// hedgeDelay is after what a hedge is sent in storms that have no attempt timeout: as with one.
const hedgeDelay = 200 * time.Millisecond

// failsafeRetry is failsafe-go's retry policy for gRPC, around its timeout policy. It retries
// UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED.
func failsafeRetry(kind failsafeKind) func(storm) (outage.Options, error) {
	return func(s storm) (outage.Options, error) {
		builder := failsafegrpc.NewRetryPolicyBuilder[any]().
			HandleErrors(timeout.ErrExceeded).
			WithMaxAttempts(attempts).
			WithBackoff(initialBackoff, maxBackoff).
			WithJitterFactor(jitter).
			ReturnLastFailure()
		var inside []failsafe.Policy[any]
		switch kind {
		case plain:
		case withBudget:
			builder = builder.WithBudget(budget.NewBuilder().WithMaxRate(0.1).Build())
		case withBreaker:
			inside = append(inside, circuitbreaker.NewBuilder[any]().
				WithFailureRateThreshold(0.5, 20, time.Second).WithDelay(500*time.Millisecond).Build())
		case withHedge:
			inside = append(inside, hedgepolicy.NewWithDelay[any](cmp.Or(s.attemptTimeout, hedgeDelay)))
		}
		if s.attemptTimeout > 0 && kind != withHedge {
			inside = append(inside, timeout.New[any](s.attemptTimeout))
		}
		policies := append([]failsafe.Policy[any]{builder.Build()}, inside...)
		return intercepted(failsafegrpc.NewUnaryClientInterceptor(policies...)), nil
	}
}
