// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package peers sets up the retries that stagger is compared with: gRPC's own, go-grpc-middleware's and failsafe-go's, all after
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

// Plan is what all clients that retry are told.
type Plan struct {
	Attempts       int           // the first included
	Initial, Max   time.Duration // of the backoff, which doubles
	Jitter         float64       // of a backoff, up and down; gRPC's own is 0.2
	AttemptTimeout time.Duration // of the clients that know it; 0: none
}

// ServiceConfig is gRPC's own retries of UNAVAILABLE and RESOURCE_EXHAUSTED, for all methods. It knows no attempt timeout. More
// are other keys of a service config, each followed by a comma.
func ServiceConfig(p Plan, more string) grpc.DialOption {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.9fs", d.Seconds()) }
	return grpc.WithDefaultServiceConfig(fmt.Sprintf(`{%s
		"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": %d, "initialBackoff": %q, "maxBackoff": %q, "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`,
		more, p.Attempts, seconds(p.Initial), seconds(p.Max)))
}

// Middleware is go-grpc-middleware's retry interceptor, which retries UNAVAILABLE, RESOURCE_EXHAUSTED, and attempts that time out.
// The longest backoff is not among its settings.
func Middleware(p Plan) []retry.CallOption {
	backoff := retry.BackoffExponential(p.Initial)
	if p.Jitter > 0 {
		backoff = retry.BackoffExponentialWithJitter(p.Initial, p.Jitter)
	}
	return []retry.CallOption{retry.WithMax(uint(p.Attempts)), retry.WithBackoff(backoff), retry.WithPerRetryTimeout(p.AttemptTimeout)}
}

// Failsafe is failsafe-go's retry policy for gRPC, around other policies. It retries UNAVAILABLE, RESOURCE_EXHAUSTED and
// DEADLINE_EXCEEDED. Its budget lets so large a part of the executions be retries; 0: none.
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

// Intercepted is a connection with an interceptor in the place of gRPC's retries.
func Intercepted(unary grpc.UnaryClientInterceptor) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(unary)}
}
