// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package interceptor retries the failed calls of a gRPC client, and limits the extra load of retries during an outage.
//
// A [Retrier] follows the policies of a file, also when the file changes. Its options make a connection retry:
//
//	retrier, err := interceptor.Watch(ctx, "retry.yaml")
//	if err != nil {
//		return nil, err
//	}
//	creds := credentials.NewTLS(nil) // insecure.NewCredentials() for a server without TLS
//	return grpc.NewClient("dns:///orders.example.com:443",
//		append(retrier.DialOptions(), grpc.WithTransportCredentials(creds))...)
//
// with this retry.yaml, which package policy and [The policy file] describe:
//
//	methodConfig:
//	- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
//	  retryPolicy:
//	    maxAttempts: 3
//	    initialBackoff: 0.1s
//	    maxBackoff: 2s
//	    backoffMultiplier: 2
//	    retryableStatusCodes: [UNAVAILABLE]
//
// [Default] returns a Retrier without a file.
//
// # Which calls are retried
//
// A call is retried if its method's policy lists the code of its failure. A call that may have taken effect is retried only if it is
// declared idempotent: by its method's entry in the file, by its descriptor, or by [Idempotent]. Streams
// are retried by the same rules as in gRPC ([Streams]).
//
// # Budgets
//
// All calls of a Retrier to a target share a budget (package budget), which pays for extra attempts. If a service is down, the budget soon
// pays for none, so retries don't multiply the load.
//
// # Errors and events
//
// A call that fails returns the server's error, with its code. The error includes an [Error], which has the number of attempts and the
// reason why the call was not retried again. An [Observer] receives every decision.
//
// # Switching off
//
// [Retrier.SetMode] switches retries off at run time, and [Disable] for one call.
//
// # Other interceptors
//
// Interceptors given to grpc.NewClient before a Retrier's run once per call, those after it once per attempt. If another library retries on
// the same connection, the attempts multiply: switch its retries off. See [What stagger does not handle].
//
// [Streams]: https://github.com/stagger-go/stagger/blob/main/docs/streams.md
// [The policy file]: https://github.com/stagger-go/stagger/blob/main/docs/policy-file.md
// [What stagger does not handle]: https://github.com/stagger-go/stagger/blob/main/NOT-HANDLED.md
package interceptor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/accounts"
	"github.com/stagger-go/stagger/internal/hooks/repeating"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// To follow a call through this package, read these ten in order; ARCHITECTURE.md has the pictures:
//
//	 1. Retrier            (interceptor.go)   what all calls share
//	 2. entry              (entry.go)         the policy, budget and evidence of a method at a target
//	 3. call               (call.go)          one call: its context, options and entry
//	 4. attempt            (attempt.go)       one attempt, and what gRPC reports of it
//	 5. Retrier.unary      (unary.go)         chooses how a unary call runs; runFirst makes the first attempt of most
//	 6. call.joinEngine    (call_engine.go)   starts the engine, package internal/attempts, after a failure
//	 7. call.resultOf      (outcome.go)       turns an error into the engine's Result
//	 8. call.reportEnd     (call_engine.go)   gives the Result to the engine, which returns a Step
//	 9. driver.run         (driver.go)        carries out Steps of attempts that may run in parallel
//	10. stream.withRetry   (stream_retry.go)  does all this for an operation of a stream

// Retrier retries calls according to its policies. One Retrier serves any number of connections, which share its budgets. It starts one
// goroutine per connection that cannot connect, until the connection recovers or is closed. You need not close it ([Retrier.Close] is for a
// service that stops). It is safe for concurrent use.
//
// [New], [Load], [Watch] and [Default] make one. A nil or zero Retrier leaves calls unchanged and has no dial options. Its methods that can
// fail return errors.
type Retrier struct {
	settings

	generation atomic.Uint64 // counts the changes of what entries are made of: rules, switches, the balances and records in the tables

	// What the policies and the switches allow now.
	rules     atomic.Pointer[rules]
	reloading sync.Mutex            // held by a reload
	refusal   atomic.Pointer[error] // why the last change of the policy file was refused; nil: it was not
	switches  atomic.Pointer[switches]
	closed    atomic.Bool
	waits     waits
	single    *policy.Policy // for methods without a policy: one attempt

	// What calls share.
	methods   accounts.Table[methodKey, *record]
	current   atomic.Pointer[currentEntries] // nil: none
	budgets   accounts.Budgets
	waitLimit waitLimit
	outages   outages
	replayed  atomic.Int64 // bytes that all streams keep for replay

	// What is reported.
	observers       atomic.Pointer[observers]
	warned          once
	withoutDeadline atomic.Uint64 // unary calls, with a policy and no deadline
}

// settings are those of the options of New. They never change again.
type settings struct {
	stats          []stats.Handler
	random         func() float64
	breaker        func(target, method string) Gate                                       // nil: none
	classifier     func(ctx context.Context, method string, reply any, err error) Verdict // nil: none
	descriptors    []*protoregistry.Files                                                 // given, in addition to linked ones
	defaultTimeout time.Duration                                                          // for policies without one; 0: none
	maxReplayed    int64                                                                  // the limit of Retrier.replayed, in bytes
	repeats        repeating.Repeater                                                     // nil: none
}

// New returns a Retrier with the policies of a set. The error names the wrong option.
func New(set *policy.Set, options ...Option) (*Retrier, error) {
	single, err := compiled.NewPolicy(spec.Policy{})
	if err != nil {
		return nil, err
	}
	r := &Retrier{
		settings: settings{random: rand.Float64, maxReplayed: defaultMaxReplayBytes},
		single:   single,
		budgets:  accounts.Budgets{Given: map[string]func(string) budget.Budget{}},
	}
	r.methods.Most = accounts.TableSize
	r.budgets.Table.Most = accounts.TableSize
	r.budgets.Generation = &r.generation
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
	if set == nil {
		return nil, errors.New("interceptor: New(nil): must be a set, as policy.Load or policy.Parse returns")
	}
	fresh := newRules(methods.Describe(set, r.descriptors...))
	if err := fresh.check(); err != nil {
		return nil, err
	}
	r.replaceRules(fresh)
	r.reportWarnings(nil)
	if r.repeats != nil {
		r.repeats.Begin(r.diagnose, protobufType)
	}
	return r, nil
}

// made reports whether New has made the Retrier.
func (r *Retrier) made() bool { return r != nil && r.rules.Load() != nil }

var errNotMade = errors.New("interceptor: the Retrier is nil or its zero value: make one with New, Load, Watch or Default")

// Load returns a Retrier with the policies of a file in JSON or YAML, and notifies the [Observer] of it. Unlike [Watch], it
// reads the file only once. For an invalid file, the error is
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
		"starts again. interceptor.Watch follows them"})
	return r, nil
}

// reconnects are gRPC's parameters but for the delays, 1 s and 120 s: a client notices the end of a restart of seconds within
// about half of its length. docs/evidence/outages.md has the measurements.
var reconnects = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 250 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
	MinConnectTimeout: 20 * time.Second,
}

// pings notice a server whose machine has vanished without closing the connection. The shortest time that every gRPC server allows by
// default is 5 minutes. On Linux, gRPC also sets the timeout for TCP (TCP_USER_TIMEOUT), so that a connection in use ends that soon after
// data was sent. docs/evidence/outages.md has the measurements behind the 20 s.
var pings = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}

// DialOptions returns the options for grpc.NewClient: the interceptors, grpc.WithDisableRetry so that gRPC does not retry each attempt by
// its own policy (the Retrier warns if that switches off retries that the policy file doesn't replace), grpc.WithConnectParams with shorter
// delays (250 ms to 3 s) between attempts to connect, grpc.WithKeepaliveParams, and those of [WithStatsHandler]. Chained interceptors given
// before these options see each call once. Those given after them see every attempt.
//
// The keepalive pings a connection that has calls after 6 minutes without a byte from the server, and closes it if no byte comes within 20
// s. On Linux, a TCP connection also ends 20 s after it has sent data that the server's machine does not acknowledge. On other systems, and
// if a custom dialer returns something else than a *net.TCPConn, only the ping detects that, up to 6 minutes and 20 s later.
//
// Of several WithConnectParams or WithKeepaliveParams, gRPC uses the last. Put your own after these options: before them, they
// have no effect.
//
// If the policy file names a load balancing policy that the program has, the options include a default service config
// (grpc.WithDefaultServiceConfig) with the file's loadBalancingConfig and healthCheckConfig. Such a policy may connect to all backends.
// gRPC uses only the last default service config among its options: this one replaces an earlier one, and a later one replaces this one. A
// service config from the resolver replaces both, unless grpc.WithDisableServiceConfig is given. If the program has none of the policies
// that the file lists, the list is left out, with a warning.
func (r *Retrier) DialOptions() []grpc.DialOption {
	if !r.made() {
		return nil
	}
	options := append(
		make([]grpc.DialOption, 0, 6+len(r.stats)),
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(reconnects),
		grpc.WithKeepaliveParams(pings),
		grpc.WithChainUnaryInterceptor(r.unary(grpcRetriesOff)),
		grpc.WithChainStreamInterceptor(r.stream(grpcRetriesOff)),
	)
	if config := r.rules.Load().channel.config; config != "" {
		options = append(options, grpc.WithDefaultServiceConfig(config))
	}
	for _, h := range r.stats {
		options = append(options, grpc.WithStatsHandler(h))
	}
	return options
}

// Close ends all retries, for a service that stops. Calls that wait for their next attempt end immediately, with their last error and
// [policy.ReasonClosed]. So do calls whose attempt fails later. Running attempts and later calls continue, and budgets keep their balances.
// Close does not wait for calls, except the second calls of package observe/repeat. You may call it more than once. Call it before
// GracefulStop:
//
//	<-sigterm
//	retrier.Close()
//	server.GracefulStop() // which would wait for backoffs of the handlers' calls otherwise
func (r *Retrier) Close() {
	if !r.made() {
		return
	}
	r.closed.Store(true)
	r.waits.recheck()
	if r.repeats != nil {
		r.repeats.Close()
	}
}

// Unary returns only the interceptor for unary calls, for use with grpc.WithUnaryInterceptor or in a chain. If gRPC's own retry policy is
// active for a method, which [Retrier.DialOptions] prevents, attempts multiply; the Retrier warns once per method. They may also multiply
// at the targets of an xDS server (xds:, google-c2p:), whose policies a Retrier can't read. If gRPC may retry, no attempt counts as unsent.
func (r *Retrier) Unary() grpc.UnaryClientInterceptor {
	return r.unary(grpcMayRetry)
}

// Stream returns only the interceptor for streams of all kinds, as [Retrier.Unary] does for unary
// calls.
func (r *Retrier) Stream() grpc.StreamClientInterceptor {
	return r.stream(grpcMayRetry)
}
