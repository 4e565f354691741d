// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"

	_ "github.com/stagger-go/stagger/admission"
	"github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/lab/outage"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/policy"
)

// client is a client with its kind of retries.
type client struct {
	name        string
	ours        bool // stagger, which has targets
	connections int  // of each process
	processes   int  // from which the users call; 0: 1
	onSlow      onSlow
	retries     where
	options     func(storm) (outage.Options, error) // of a process
}

// where a retry goes.
type where int

const (
	wherePicked          where = iota // where the load balancing policy picks
	whereElsewhere                    // to another backend: package elsewhere wraps that policy
	whereElsewhereAtOnce              // likewise, with the first at once
)

// onSlow is what a client makes of an attempt that is slow.
type onSlow int

const (
	onSlowWait    onSlow = iota // it knows no attempt timeout
	onSlowTimeout               // after the storm's attempt timeout, if it has one
	onSlowHedge                 // after the storm's attempt timeout; in storms that have none too
)

// comparable reports whether stagger, which times out as the storm says, may be compared with it.
func (o onSlow) comparable(s storm) bool {
	if s.attemptTimeout == 0 && s.hedgingDelay == 0 {
		return o != onSlowHedge
	}
	return o != onSlowWait
}

// in returns the client for a storm.
func (c client) in(s storm) outage.Client {
	return outage.Client{Name: c.name, Connections: c.connections, Processes: c.processes, Options: func() (outage.Options, error) {
		s.process++
		options, err := c.options(s)
		// The client's own load balancing comes later, and wins.
		options.Dial = append([]grpc.DialOption{grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": ` + s.balancing(false) + `}`)}, options.Dial...)
		return options, err
	}}
}

// plain reports whether c makes one attempt per call: those are the reference.
func (c client) plain() bool { return strings.HasPrefix(c.name, noRetriesName) }

// inAll returns the number of its users' connections.
func (c client) inAll() int { return max(c.connections, 1) * max(c.processes, 1) }

// Settings that the retrying clients share; the policy file has the same for stagger.
const (
	noRetriesName  = "no retries"
	attempts       = 5
	initialBackoff = 100 * time.Millisecond
	maxBackoff     = 2 * time.Second
	jitter         = 0.2 // of the peers: ±20 %, as in gRPC
	hedgeDelay     = 200 * time.Millisecond
)

// peersOf are stagger's peers.
func peersOf() []client {
	// The example of gRFC A6, and a setting that allows retries while more than half of the attempts succeed.
	throttled := builtIn(`"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},`, false)
	generous := builtIn(`"retryThrottling": {"maxTokens": 100, "tokenRatio": 1},`, false)
	breaker := func(storm) failsafe.Policy[any] { // around the attempt timeout
		return circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 20, time.Second).WithDelay(500 * time.Millisecond).Build()
	}
	hedge := func(s storm) failsafe.Policy[any] {
		return hedgepolicy.NewWithDelay[any](cmp.Or(s.attemptTimeout, hedgeDelay))
	}
	return []client{
		{name: "gRPC", options: builtIn("", false)},
		{name: "gRPC, throttling", options: throttled},
		{name: "gRPC, throttling 100/1", options: generous},
		{name: "grpc-middleware", onSlow: onSlowTimeout, options: middleware},
		{name: "failsafe", onSlow: onSlowTimeout, options: failsafeRetry(onSlowTimeout, 0, nil)},
		{name: "failsafe, budget", onSlow: onSlowTimeout, options: failsafeRetry(onSlowTimeout, 0.1, nil)}, // extra attempts up to 10 % of those that run
		{name: "failsafe, breaker", onSlow: onSlowTimeout, options: failsafeRetry(onSlowTimeout, 0, breaker)},
		{name: "failsafe, hedge", onSlow: onSlowHedge, options: failsafeRetry(onSlowHedge, 0, hedge)},
	}
}

// clients are the clients of most storms. The first is the reference.
func clients() []client {
	list := append([]client{{name: noRetriesName, options: noRetries}}, ours("stagger", wherePicked)...)
	return append(list, peersOf()...)
}

// elsewhereClients are those of the storms in which some backends are worse than others: stagger with and without retries
// elsewhere, gRPC's own with them, and the peers, whose retries go where the same policy picks.
func elsewhereClients() []client {
	list := append([]client{{name: noRetriesName, options: noRetries}}, ours("stagger", wherePicked)...)
	list = append(append(list, ours("elsewhere", whereElsewhere)...), ours("at once", whereElsewhereAtOnce)...)
	list = append(list, client{name: "gRPC, elsewhere", retries: whereElsewhere, options: builtIn("", true)}) // on our balancer
	all := peersOf()
	return append(list, all[0], all[3], all[4], all[7])
}

// gridClients are the grid's clients: the same calls from one process and from many, each with its own budgets, and for each
// its reference, no retries over as many connections.
func gridClients() (list []client) {
	for _, c := range ours("", wherePicked) {
		list = append(list, client{name: noRetriesName + c.name, connections: c.connections, options: noRetries})
	}
	list = append(list, ours("stagger", wherePicked)...)
	for _, processes := range []int{10, 100} {
		c := ours(fmt.Sprintf("stagger, %d processes", processes), wherePicked)[0]
		c.processes = processes
		list = append(list, c)
	}
	return list
}

const admission = "admission"

// admissionClients are the clients to compare admission with: no retries, stagger without it from 1 and 100 processes, and
// failsafe-go's adaptive limiter and throttler with their defaults, which do not retry here. It also returns how many calls admission
// has refused, by client.
func admissionClients() ([]client, map[string]*atomic.Int64) {
	list, refused := []client{{name: noRetriesName, options: noRetries}, ours("stagger", wherePicked)[0]}, map[string]*atomic.Int64{}
	list = append(list, list[1])
	list[2].name, list[2].processes = "stagger, 100 processes", 100
	list[1].ours, list[2].ours = false, false // the grid has their targets
	for _, from := range []struct {
		suffix                 string
		connections, processes int
	}{{"", 1, 0}, {", 10 conns", 10, 0}, {", 100 conns", 100, 0}, {", 10 processes", 1, 10}, {", 100 processes", 1, 100}} {
		n := new(atomic.Int64)
		refused[admission+from.suffix] = n
		count := interceptor.WithObserver(interceptor.Observer{CallEnd: func(_ context.Context, e interceptor.CallEnd) {
			if e.Reason == policy.ReasonOverloaded && e.Attempts == 0 {
				n.Add(1)
			}
		}})
		list = append(list, client{
			name: admission + from.suffix, ours: true, connections: from.connections, processes: from.processes, onSlow: onSlowTimeout,
			options: func(s storm) (outage.Options, error) { return stagger(s, wherePicked, admission, count) },
		})
		if from.connections == 1 && from.processes != 10 {
			list = append(list,
				client{name: "limiter" + from.suffix, processes: from.processes, options: intercepted(adaptivelimiter.NewWithDefaults[any])},
				client{name: "throttler" + from.suffix, processes: from.processes, options: intercepted(adaptivethrottler.NewWithDefaults[any])})
		}
	}
	return list, refused
}

// ours returns stagger with 1, 10 and 100 connections.
func ours(name string, retries where) (list []client) {
	for _, n := range []int{1, 10, 100} {
		c := client{
			name: name, ours: true, connections: n, onSlow: onSlowTimeout, retries: retries,
			options: func(s storm) (outage.Options, error) { return stagger(s, retries, "") },
		}
		if n > 1 {
			c.name = fmt.Sprintf("%s, %d conns", name, n)
		}
		list = append(list, c)
	}
	return list
}

// policiesOf returns stagger's policies, the same in every storm except where retries go, and with admission on every entry, if it is
// asked for.
func policiesOf(s storm, retries where, with ...string) (*policy.Set, error) {
	data, err := os.ReadFile("retry.yaml")
	if err != nil {
		return nil, err
	}
	text := string(data)
	if retries != wherePicked {
		text += "\nloadBalancingConfig: " + s.balancing(true) + "\n"
	}
	if retries == whereElsewhereAtOnce {
		text = strings.ReplaceAll(text, "    retryPolicy:\n", "    retryPolicy:\n      firstRetry: AT_ONCE\n")
	}
	if len(with) > 0 && with[0] == admission {
		text = strings.ReplaceAll(text, "  - name:", "  - admission: REFUSE\n    name:")
	}
	return policy.Parse("retry.yaml", []byte(text))
}

// stagger returns a client that follows the policy file. All connections of a process share its budget. Jitter is repeatable if the
// calls come in the same order, and each process has its own.
func stagger(s storm, retries where, with string, options ...interceptor.Option) (outage.Options, error) {
	set, err := policiesOf(s, retries, with)
	if err != nil {
		return outage.Options{}, err
	}
	var mu sync.Mutex
	numbers := rand.New(rand.NewPCG(1, s.process))
	chance := interceptor.WithRandom(func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return numbers.Float64()
	})
	retrier, err := interceptor.New(set, append(options, chance)...)
	if err != nil {
		return outage.Options{}, err
	}
	// The testserver serves all methods as streams.
	return outage.Options{Dial: retrier.DialOptions(), Server: retrier.ServerOptions()}, nil
}

func noRetries(storm) (outage.Options, error) {
	return outage.Options{Dial: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
}

// plan returns the settings that the retrying clients share in a storm.
func plan(s storm) peers.Plan {
	return peers.Plan{Attempts: attempts, Initial: initialBackoff, Max: maxBackoff, Jitter: jitter, AttemptTimeout: s.attemptTimeout}
}

// builtIn returns gRPC's own retries. They go elsewhere if each call has a context for its backends.
func builtIn(extra string, another bool) func(storm) (outage.Options, error) {
	note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(elsewhere.NewContext(ctx), method, req, reply, cc, opts...)
	}
	return func(s storm) (outage.Options, error) {
		dial := []grpc.DialOption{peers.ServiceConfig(plan(s), fmt.Sprintf(`"loadBalancingConfig": %s, %s`, s.balancing(another), extra))}
		if another {
			dial = append(dial, grpc.WithUnaryInterceptor(note))
		}
		return outage.Options{Dial: dial}, nil
	}
}

func middleware(s storm) (outage.Options, error) {
	return outage.Options{Dial: peers.Intercepted(retry.UnaryClientInterceptor(peers.Middleware(plan(s))...))}, nil
}

// failsafeRetry returns failsafe-go's retry policy around another policy, with a budget that is a part of the calls. A hedge takes the
// place of the attempt timeout. The types of failsafe-go's policies don't tell them apart, so the caller says which it is.
func failsafeRetry(slow onSlow, share float64, inside func(storm) failsafe.Policy[any]) func(storm) (outage.Options, error) {
	return func(s storm) (outage.Options, error) {
		p := plan(s)
		if slow == onSlowHedge {
			p.AttemptTimeout = 0
		}
		var policies []failsafe.Policy[any]
		if inside != nil {
			policies = append(policies, inside(s))
		}
		return outage.Options{Dial: peers.Intercepted(peers.Failsafe(p, share, policies...))}, nil
	}
}

// intercepted returns a client with one policy of failsafe-go and no retries.
func intercepted[P failsafe.Policy[any]](of func() P) func(storm) (outage.Options, error) {
	return func(storm) (outage.Options, error) {
		return outage.Options{Dial: peers.Intercepted(failsafegrpc.NewUnaryClientInterceptor[any](of()))}, nil
	}
}
