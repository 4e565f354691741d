// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/observe/otelstagger"
)

// The called methods.
const (
	service              = "stagger.compare.v1.Shop"
	callName, streamName = "Get", "Stream"
	method, streamMethod = "/" + service + "/" + callName, "/" + service + "/" + streamName
)

const (
	never  = time.Hour       // for events that must not happen during a measurement
	atOnce = time.Nanosecond // for waits that should cost only code
)

// setup is the configuration of a client.
type setup struct {
	options []grpc.DialOption // of a connection of its own
	shares  bool              // it is its interceptors alone, which can run on the connection of others
	unary   grpc.UnaryClientInterceptor
	stream  grpc.StreamClientInterceptor
	learns  int // calls that succeed first, if it hedges
}

// learns is how many calls show stagger that a service is fast: only then it sends attempts beside slow ones.
const learns = 20

// learn makes the calls from which the client learns, with one attempt each.
func (s setup) learn(call func(...grpc.CallOption) error) error {
	for range s.learns {
		if err := call(grpc.StaticMethod(), interceptor.MaxAttempts(1)); err != nil {
			return err
		}
	}
	return nil
}

// client is a client with its kind of retries.
type client struct {
	name    string
	prepare func(peers.Plan) (setup, error)
}

// eager is the plan of all clients that are compared by retries. It has no randomness: no jitter.
var eager = peers.Plan{Attempts: 4, Initial: atOnce, Max: atOnce}

// The clients. Budgets and throttling count everything, but stop nothing that is compared.
var (
	bare      = client{"gRPC, no retries", noRetries}
	twice     = client{"two calls without retries", twoCalls}
	builtIn   = client{"gRPC's retries", serviceConfig("")}
	throttled = client{"gRPC's retries, throttling", serviceConfig(`"retryThrottling": {"maxTokens": 1000, "tokenRatio": 1},`)}
	ecosystem = client{"go-grpc-middleware", middleware}
	failsafes = client{"failsafe-go", failsafe(0)}
	budgeted  = client{"failsafe-go, budget", failsafe(1)}
	hedges    = client{"failsafe-go, hedge", failsafeHedge}
	unlimited = client{"stagger, no budget", staggerRetries("NONE")}
	stagger   = client{"stagger", staggerRetries(budgetName)}
	noPolicy  = client{"stagger, no policy", withoutPolicy}
	ourHedges = client{"stagger, hedge", staggerHedge}
	observed  = client{"stagger, an observer of ends", staggerObserved}
	// With metrics, which are recorded, but not collected during the measurement.
	bareMetrics    = client{"gRPC, no retries, gRPC's metrics", grpcMetrics(noRetries)}
	builtInMetrics = client{"gRPC's retries, gRPC's metrics", grpcMetrics(serviceConfig(""))}
	ourMetrics     = client{"stagger, its metrics", staggerMetrics}
)

func noRetries(peers.Plan) (setup, error) {
	return setup{options: []grpc.DialOption{grpc.WithDisableRetry()}, shares: true}, nil
}

// twoCalls makes a second call after one that failed: what a retry costs at least.
func twoCalls(peers.Plan) (setup, error) {
	return intercepted(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if invoke(ctx, method, req, reply, cc, opts...) == nil {
			return errors.New("the first call has succeeded")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}), nil
}

func serviceConfig(more string) func(peers.Plan) (setup, error) {
	return func(p peers.Plan) (setup, error) {
		return setup{options: []grpc.DialOption{peers.ServiceConfig(p, more)}}, nil
	}
}

func middleware(p peers.Plan) (setup, error) {
	options := peers.Middleware(p)
	made := intercepted(retry.UnaryClientInterceptor(options...))
	made.stream = retry.StreamClientInterceptor(options...)
	made.options = append(made.options, grpc.WithStreamInterceptor(made.stream))
	return made, nil
}

func intercepted(unary grpc.UnaryClientInterceptor) setup {
	return setup{options: peers.Intercepted(unary), shares: true, unary: unary}
}

func failsafe(share float64) func(peers.Plan) (setup, error) {
	return func(p peers.Plan) (setup, error) { return intercepted(peers.Failsafe(p, share)), nil }
}

// failsafeHedge hedges after the plan's backoff.
func failsafeHedge(p peers.Plan) (setup, error) {
	return intercepted(failsafegrpc.NewUnaryClientInterceptor(hedgepolicy.NewBuilderWithDelay[any](p.Initial).WithMaxHedges(1).Build())), nil
}

func newProvider() *sdk.MeterProvider {
	return sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
}

// grpcMetrics adds gRPC's own metrics of calls and attempts to a client.
func grpcMetrics(prepare func(peers.Plan) (setup, error)) func(peers.Plan) (setup, error) {
	return func(p peers.Plan) (setup, error) {
		made, err := prepare(p)
		metrics := opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: newProvider()}})
		made.options = slices.Concat([]grpc.DialOption{metrics}, made.options) // before the interceptors, so that it counts calls
		made.shares = false
		return made, err
	}
}

func staggerMetrics(p peers.Plan) (setup, error) {
	return staggerRetries(budgetName, otelstagger.WithMetrics(newProvider()))(p)
}

// staggerObserved counts calls when they have ended, as little as metrics of one's own can do.
func staggerObserved(p peers.Plan) (setup, error) {
	var ended atomic.Int64
	return staggerRetries(budgetName, interceptor.WithObserver(interceptor.Observer{
		CallEnd: func(context.Context, interceptor.CallEnd) { ended.Add(1) },
	}))(p)
}

// budgetName is stagger's default budget, with a bucket that is never empty in comparisons.
const budgetName = "bucket"

// staggerRetries follows the plan.
func staggerRetries(budget string, options ...interceptor.Option) func(peers.Plan) (setup, error) {
	return func(p peers.Plan) (setup, error) {
		s, err := retrier(spec.Policy{Retry: &spec.Retry{
			MaxAttempts: p.Attempts, PerAttemptTimeout: p.AttemptTimeout, Budget: budget,
			Backoff:              backoff.Config{Initial: p.Initial, Max: p.Max, Multiplier: 2, Jitter: "NONE"},
			RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.ResourceExhausted},
		}}, options...)
		if p.AttemptTimeout > 0 && p.AttemptTimeout < never {
			s.learns = learns
		}
		return s, err
	}
}

// withoutPolicy has no policy for the methods that are called.
func withoutPolicy(peers.Plan) (setup, error) { return retrier(spec.Policy{}) }

// staggerHedge hedges after the plan's backoff.
func staggerHedge(p peers.Plan) (setup, error) {
	hedge := &spec.Hedge{MaxAttempts: 2, HedgingDelay: p.Initial, Budget: budgetName}
	if p.Initial != atOnce { // which is not reached
		return retrier(spec.Policy{Hedge: hedge})
	}
	hedge.HedgingDelay = 0
	s, err := retrier(spec.Policy{Hedge: hedge})
	s.learns = learns
	return s, err
}

// retrier returns a client with this policy of both methods. Its limit on waiting calls exceeds every measurement.
func retrier(p spec.Policy, options ...interceptor.Option) (setup, error) {
	bucket := budget.Default()
	bucket.Size = 1e6 // it never runs dry
	config := spec.Config{
		MaxWaiting: 2 * mostWaiting, // one target has half of them
		Methods:    []spec.MethodConfig{{Names: []string{method, streamMethod}, Policy: p}},
	}
	if p.Hedge != nil || p.Retry != nil && p.Retry.Budget == budgetName {
		config.Budgets = []spec.Budget{{Name: budgetName, Config: bucket}}
	}
	set, err := compiled.NewSet(config)
	if err != nil {
		return setup{}, err
	}
	r, err := interceptor.New(set, options...)
	if err != nil {
		return setup{}, err
	}
	return setup{options: r.DialOptions(), shares: true, unary: r.Unary(), stream: r.Stream()}, nil
}
