// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package interceptor retries the failed calls of a gRPC client, without ever making an outage
// worse.
//
//	retrier, err := interceptor.Watch(ctx, "retry.yaml")
//	conn, err := grpc.NewClient(target, retrier.DialOptions()...)
//
// What is retried, when and how often stands in policies (package policy). Extra attempts are paid
// from budgets (package budget) that all calls of a Retrier share. A call that may have taken
// effect is repeated only if somebody declared its method safe to repeat.
//
// # Order
//
// Interceptors that are given to grpc.NewClient before a Retrier's run once for each call, those
// after it once for each attempt:
//
//	application → logging of calls → Retrier → ┬ attempt 1 → auth, tracing of attempts → server
//	                                           └ attempt 2 → auth, tracing of attempts → server
//
// Those after it must not use the options of an attempt when it has returned: another call may be
// using them. If they return before gRPC has ended the attempt, which may then still write into the reply, the call is not
// retried; from then on, a Retrier gives each attempt a reply of its own, where it can make one.
//
// Retries of another library on the same connection multiply with a Retrier's, before it or after it: switch them
// off. A Retrier warns of those that it can see when calls fail (docs/loops.md), and of go-grpc-middleware's call options, which
// mean nothing to it.
package interceptor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// Retrier retries calls as its policies say. One Retrier serves any number of connections, which
// then share its budgets. It starts no goroutine but for connections that cannot connect, one each until they can or are
// closed; it needs no closing ([Retrier.Close] is for a service that stops), and is safe for concurrent use.
type Retrier struct {
	rules          atomic.Pointer[rules]
	reloading      sync.Mutex // held by a reload, and to add a balance
	refusal        atomic.Pointer[error]
	single         *decision.Policy // for methods without a policy: one attempt
	targets        targetNames
	budgets        budgets
	observers      atomic.Pointer[observers]
	stats          []stats.Handler
	random         func() float64
	warned         once
	outer          *outerRetries // a timer of its own keeps it, and not the Retrier
	maxReplayed    int64         // bytes that all streams may keep for replay
	replayed       atomic.Int64  // bytes that they keep now
	waitLimit      waitLimit
	methods        methods.Table
	breaker        func(target, method string) attempts.Breaker                           // nil: none
	classifier     func(ctx context.Context, method string, reply any, err error) Verdict // nil: none
	descriptors    []*protoregistry.Files                                                 // given, beside those that are linked in
	newReply       func(method string, reply any) func() any                              // nil: none
	serviceConfigs *serviceConfigs                                                        // nil unless service configs are followed
	switches       atomic.Pointer[switches]
	closed         atomic.Bool
	leftRunning    atomic.Bool // an inner interceptor has returned from an attempt that gRPC had not ended
	waits          waits
	outages        outages
	keepalive      bool // DialOptions set it
}

// New makes a Retrier that follows the policies of a set, and those that come with APIs where the set has
// none ([policy.Set.WithDescriptors]). The error says which option is wrong; what is wrong with a policy
// that comes with an API is a [*policy.Error].
func New(set *policy.Set, options ...Option) (*Retrier, error) {
	r := &Retrier{
		single:      decision.New(policy.Spec{}),
		budgets:     budgets{given: map[string]balance.Budget{}, rules: map[string]budgetRule{}},
		random:      rand.Float64,
		maxReplayed: defaultMaxReplayBytes,
		outer:       new(outerRetries),
	}
	r.switches.Store(&switches{all: enforced("")})
	r.observers.Store(new(observers))
	r.waits.current.Store(newInterruption())
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("interceptor: New: option %d is nil", i)
		}
		if err := option(r); err != nil {
			return nil, err
		}
	}
	set, err := r.given(set)
	if err != nil {
		return nil, err
	}
	if set, err = set.WithDescriptors(r.descriptors...); err != nil {
		return nil, err
	}
	fresh := newRules(decision.Compile(set), budgetOfPolicies)
	if err := fresh.check(&r.budgets); err != nil {
		return nil, err
	}
	r.follow(fresh)
	r.reportWarnings()
	return r, nil
}

// given is the set that New was given, or an empty one in place of nil if service configs are followed.
func (r *Retrier) given(set *policy.Set) (*policy.Set, error) {
	switch {
	case set == nil && r.serviceConfigs != nil:
		return policy.NewSet(policy.Config{})
	case set == nil:
		return nil, errors.New("interceptor: New(nil): must be a set; policy.NewSet(policy.Config{}) is an empty one")
	}
	return set, nil
}

// Load makes a Retrier that follows a policy file in JSON or YAML as it is now; a note says so ([Observer]). [Watch]
// follows the file as it changes. What is wrong with the file is
// a [*policy.Error] with file, line, field and value of each mistake.
func Load(path string, options ...Option) (*Retrier, error) {
	set, err := policy.Load(path)
	if err != nil {
		return nil, err
	}
	r, err := New(set, options...)
	if err != nil {
		return nil, err
	}
	r.note(policy.Diagnostic{File: path, Field: "hash", Value: set.Hash(), Message: "changes of the file are not followed until the program " +
		"starts again; interceptor.Watch follows them"})
	return r, nil
}

// DialOptions returns what grpc.NewClient needs: the interceptors, grpc.WithDisableRetry so
// that gRPC does not retry each attempt by a policy of its own, and what [WithStatsHandler] and [WithKeepalive] add. Chained interceptors
// whose options stand before these see each call once, those after them every attempt.
//
// If the policy file's loadBalancingConfig names a policy of package balancer, it comes as the connection's default
// service config, which carries nothing else (grpc.WithDefaultServiceConfig). gRPC takes the last default that it is
// given, whole: one that stands before these options is replaced, one behind them replaces it. A service config that
// the resolver delivers replaces either, unless grpc.WithDisableServiceConfig is given.
func (r *Retrier) DialOptions() []grpc.DialOption {
	options := append(
		make([]grpc.DialOption, 0, 5+len(r.stats)),
		grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(r.unary(alone)),
		grpc.WithChainStreamInterceptor(r.stream(alone)),
	)
	if balancing := r.balancingOption(); balancing != nil {
		options = append(options, balancing)
	}
	if r.keepalive {
		options = append(options, grpc.WithKeepaliveParams(slowKeepalive))
	}
	for _, h := range r.stats {
		options = append(options, grpc.WithStatsHandler(h))
	}
	return options
}

// Close lets no attempt follow another from now on, for a service that stops: calls that wait for their next attempt
// end at once, with the error of the last one and [policy.ReasonClosed], and so do calls whose attempt fails later.
// Attempts that run go on, and so do calls that begin later; budgets keep their balances. It does not wait for calls,
// and may be called more than once. A Retrier with a fleet ([WithFleet]) asks its pools nothing more:
//
//	<-sigterm
//	retrier.Close()
//	server.GracefulStop() // which would wait for backoffs of the handlers' calls otherwise
func (r *Retrier) Close() {
	r.closed.Store(true)
	if r.budgets.pools != nil {
		r.budgets.pools.Close()
	}
	r.waits.recheck()
}

// Unary returns the interceptor for unary calls alone, for use with grpc.WithUnaryInterceptor or in
// a chain. If gRPC's own retry policy is active for a method, which [Retrier.DialOptions] prevents,
// attempts multiply; the Retrier warns of it once for each method. So they may at the targets of an xDS server
// (xds:, google-c2p:), whose policies nobody sees; the Retrier warns of that once. Where gRPC may retry, no attempt
// counts as unsent.
func (r *Retrier) Unary() grpc.UnaryClientInterceptor { return r.unary(besideGRPC) }

// Stream returns the interceptor for streams of all kinds alone, as [Retrier.Unary] does for unary
// calls.
func (r *Retrier) Stream() grpc.StreamClientInterceptor { return r.stream(besideGRPC) }
