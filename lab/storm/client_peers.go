// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/balancer"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/lab/peers"
)

// throttling is the example of gRFC A6.
const throttling = `"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},`

// plan returns the settings that the retrying clients share in a storm; the policy file has the same for stagger.
func plan(s storm) peers.Plan {
	return peers.Plan{Attempts: attempts, Initial: initialBackoff, Max: maxBackoff, Jitter: jitter, AttemptTimeout: s.attemptTimeout}
}

// builtIn returns gRPC's own retries. They go elsewhere if each call has a context for its backends.
func builtIn(extra string, elsewhere bool) func(storm) (outage.Options, error) {
	note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(balancer.NewContext(ctx), method, req, reply, cc, opts...)
	}
	return func(s storm) (outage.Options, error) {
		dial := []grpc.DialOption{peers.ServiceConfig(plan(s), fmt.Sprintf(`"loadBalancingConfig": %s, %s`, s.balancing(elsewhere), extra))}
		if elsewhere {
			dial = append(dial, grpc.WithUnaryInterceptor(note))
		}
		return outage.Options{Dial: dial}, nil
	}
}

func middleware(s storm) (outage.Options, error) {
	return outage.Options{Dial: peers.Intercepted(retry.UnaryClientInterceptor(peers.Middleware(plan(s))...))}, nil
}

// failsafeKind is the policy inside a retry policy of failsafe-go.
type failsafeKind int

const (
	plain       failsafeKind = iota
	withBudget               // the same budget as stagger's, in parts of the calls
	withBreaker              // opens for half a second when half of 20 attempts or more fail in a second
	withHedge                // one for each attempt, instead
)

// hedgeDelay is the time before a hedge in storms without an attempt timeout: the same as with one.
const hedgeDelay = 200 * time.Millisecond

func failsafeRetry(kind failsafeKind) func(storm) (outage.Options, error) {
	return func(s storm) (outage.Options, error) {
		p, share := plan(s), 0.0
		var inside []failsafe.Policy[any]
		switch kind {
		case plain:
		case withBudget:
			share = 0.1
		case withBreaker:
			inside = append(inside, circuitbreaker.NewBuilder[any]().
				WithFailureRateThreshold(0.5, 20, time.Second).WithDelay(500*time.Millisecond).Build())
		case withHedge:
			inside = append(inside, hedgepolicy.NewWithDelay[any](cmp.Or(s.attemptTimeout, hedgeDelay)))
			p.AttemptTimeout = 0
		}
		return outage.Options{Dial: peers.Intercepted(peers.Failsafe(p, share, inside...))}, nil
	}
}
