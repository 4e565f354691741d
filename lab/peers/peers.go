// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package peers sets up the retries to compare stagger with: gRPC's own, go-grpc-middleware's and failsafe-go's, all with
// the same plan.
package peers

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

// Plan has the settings of all clients that retry.
type Plan struct {
	Attempts       int           // including the first
	Initial, Max   time.Duration // of the backoff, which doubles
	Jitter         float64       // part of a backoff, up and down; gRPC's
	AttemptTimeout time.Duration // of the clients that support
}

// ServiceConfig returns gRPC's own retries of UNAVAILABLE and RESOURCE_EXHAUSTED, for all methods. It has no attempt
// timeout. More are other keys of a service config, each followed by a comma.
func ServiceConfig(p Plan, more string) grpc.DialOption {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.9fs", d.Seconds()) }
	return grpc.WithDefaultServiceConfig(fmt.Sprintf(`{%s
		"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": %d, "initialBackoff": %q, "maxBackoff": %q, "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`,
		more, p.Attempts, seconds(p.Initial), seconds(p.Max)))
}

// Middleware returns go-grpc-middleware's retry interceptor, which retries UNAVAILABLE, RESOURCE_EXHAUSTED, and attempts
// that time out. It has no setting for the longest backoff.
func Middleware(p Plan) []retry.CallOption {
	backoff := retry.BackoffExponential(p.Initial)
	if p.Jitter > 0 {
		backoff = retry.BackoffExponentialWithJitter(p.Initial, p.Jitter)
	}
	return []retry.CallOption{retry.WithMax(uint(p.Attempts)), retry.WithBackoff(backoff), retry.WithPerRetryTimeout(p.AttemptTimeout)}
}

// Failsafe returns failsafe-go's retry policy for gRPC, around other policies. It retries UNAVAILABLE, RESOURCE_EXHAUSTED
// and DEADLINE_EXCEEDED. Its budget is the part of executions that may be retries; 0: none.
func Failsafe(p Plan, share float64, inside ...failsafe.Policy[any]) grpc.UnaryClientInterceptor {
	builder := failsafegrpc.NewRetryPolicyBuilder[any]().HandleErrors(timeout.ErrExceeded).WithMaxAttempts(p.Attempts).ReturnLastFailure()
	if p.Max > p.Initial {
		builder = builder.WithBackoff(p.Initial, p.Max)
	} else {
		builder = builder.WithDelay(p.Initial)
	}
	if p.Jitter > 0 {
		builder = builder.WithJitterFactor(p.Jitter)
	}
	if share > 0 {
		builder = builder.WithBudget(budget.NewBuilder().WithMaxRate(share).Build())
	}
	if p.AttemptTimeout > 0 {
		inside = append(inside, timeout.New[any](p.AttemptTimeout))
	}
	return failsafegrpc.NewUnaryClientInterceptor(append([]failsafe.Policy[any]{builder.Build()}, inside...)...)
}

// Intercepted returns the options of a connection with an interceptor instead of gRPC's retries.
func Intercepted(unary grpc.UnaryClientInterceptor) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(unary)}
}
