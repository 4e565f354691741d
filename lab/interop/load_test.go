// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// client is a kind of retries, under test or for comparison.
type client struct {
	name    string
	options func(*testing.T) []grpc.DialOption
	unsafe  bool // it retries non-idempotent calls: a control, which shows that the count can detect that
}

const (
	bareName    = "gRPC, no retries"
	retriesName = "gRPC's retries"
	ourName     = "stagger"
)

// bare is gRPC without retries, except those in its transport.
func bare() client {
	return client{name: bareName, options: func(*testing.T) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithDefaultServiceConfig("{" + roundRobin + "}")}
	}}
}

// roundRobin spreads calls over all backends.
const roundRobin = `"loadBalancingConfig": [{"round_robin": {}}]`

// grpcRetries is gRPC with a service config that retries every method.
func grpcRetries() client {
	const config = `{` + roundRobin + `, "methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "1s",
		"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	return client{name: retriesName, unsafe: true, options: func(*testing.T) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}
	}}
}

// ours is stagger with the policies of a user's first file; head goes at its top.
func ours(name, head string) client {
	const retry = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}`
	text := head + `
methodConfig:
  - {name: [{service: interop.v1.OrderService, method: GetOrder}], ` + retry + `}
  - {name: [{}], ` + retry + `}
`
	return client{name: name, options: func(t *testing.T) []grpc.DialOption {
		return append(retrier(t, text).DialOptions(), grpc.WithDefaultServiceConfig("{"+roundRobin+"}"))
	}}
}

func retrier(t *testing.T, text string, opts ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	set := must.Get(policy.Parse("retry.yaml", []byte(text)))(t)
	return must.Get(interceptor.New(set, opts...))(t)
}

// dial connects to a target on loopback; the connection closes when the test ends.
func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := must.Get(grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dialAll connects to servers on several ports; options set the load balancing.
func dialAll(t *testing.T, ports []int, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	var state resolver.State
	for _, port := range ports {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address(port)}}})
	}
	r := manual.NewBuilderWithScheme("ports")
	r.InitialState(state)
	return dial(t, "ports:///all", append(opts, grpc.WithResolvers(r))...)
}

// connectEach reconnects at this interval, instead of after 1 s, 1.6 s and so on.
func connectEach(d time.Duration) grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: d, Multiplier: 1, MaxDelay: d}, MinConnectTimeout: time.Second})
}

// outcome is the outcome of a call.
type outcome struct {
	request string
	method  string
	err     error
	took    time.Duration
}

// load makes calls at fixed times, however earlier ones end, until stopped.
type load struct {
	name    string
	stop    context.CancelFunc
	calls   sync.WaitGroup
	stopped chan struct{}

	mu       sync.Mutex
	outcomes []outcome
}

// callee is a called method, with a unique text per call.
type callee struct {
	method string
	call   func(ctx context.Context, request string) error
}

// orders are methods of the backends.
func orders(conn *grpc.ClientConn, methods ...string) (callees []callee) {
	for _, method := range methods {
		callees = append(callees, callee{method, func(ctx context.Context, request string) error {
			return conn.Invoke(ctx, method, wrapperspb.String(request), new(wrapperspb.StringValue))
		}})
	}
	return callees
}

// startLoad makes this many calls a second, of the methods in turn.
func startLoad(t *testing.T, name string, rate int, callees ...callee) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{name: name, stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(l.stopped)
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		begin, n := time.Now(), 0
		for {
			for due := int(time.Since(begin).Seconds() * float64(rate)); n < due; n++ {
				callee, request := callees[n%len(callees)], n
				l.calls.Go(func() { l.call(t.Context(), callee, request) })
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(stop)
	return l
}

func (l *load) call(ctx context.Context, c callee, n int) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request := fmt.Sprintf("%s%s %d", l.prefix(), c.method, n)
	begin := time.Now()
	err := c.call(ctx, request)
	o := outcome{request, c.method, err, time.Since(begin)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes = append(l.outcomes, o)
}

// prefix returns the prefix of the load's requests.
func (l *load) prefix() string { return l.name + " " }

// end stops the load, and returns the outcomes of all its calls.
func (l *load) end() outcomes {
	l.stop()
	<-l.stopped
	l.calls.Wait()
	return l.outcomes
}

type outcomes []outcome

// of returns those of one method.
func (o outcomes) of(method string) outcomes {
	return slices.DeleteFunc(slices.Clone(o), func(o outcome) bool { return o.method != method })
}

// good returns how many have succeeded.
func (o outcomes) good() (n int) {
	for _, c := range o {
		if c.err == nil {
			n++
		}
	}
	return n
}

// refused returns how many have failed because stagger's budget refused a retry.
func (o outcomes) refused() (n int) {
	for _, c := range o {
		if e, ok := errors.AsType[*interceptor.Error](c.err); ok && e.Reason == policy.ReasonBudgetExhausted {
			n++
		}
	}
	return n
}

// p99 returns the 99 % quantile of the calls' times.
func (o outcomes) p99() time.Duration {
	if len(o) == 0 {
		return 0
	}
	took := make([]time.Duration, len(o))
	for i, c := range o {
		took[i] = c.took
	}
	slices.Sort(took)
	return took[(len(took)-1)*99/100]
}

// codes returns the codes of failed calls, with their numbers.
func (o outcomes) codes() map[codes.Code]int {
	m := map[codes.Code]int{}
	for _, c := range o {
		if c.err != nil {
			m[status.Code(c.err)]++
		}
	}
	return m
}
