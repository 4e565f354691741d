// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
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

// ours is stagger with the policies of a user's first file.
func ours() client {
	const retry = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}`
	return client{name: ourName, options: func(t *testing.T) []grpc.DialOption {
		r := retrier(t, "methodConfig: [{name: [{service: interop.v1.OrderService, method: GetOrder}], "+retry+"}, {name: [{}], "+retry+"}]")
		return append(r.DialOptions(), grpc.WithDefaultServiceConfig("{"+roundRobin+"}"))
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
}

// callee is a called method, with a unique text per call.
type callee struct {
	method string
	call   func(ctx context.Context, request string) error
}

// orders are methods of the backends.
func orders(conn *grpc.ClientConn) (callees []callee) {
	for _, method := range []string{getOrder, createOrder} {
		callees = append(callees, callee{method, func(ctx context.Context, request string) error {
			return conn.Invoke(ctx, method, wrapperspb.String(request), new(wrapperspb.StringValue))
		}})
	}
	return callees
}

// underLoad makes this many calls a second from each client, of its callees in turn and however earlier ones end, while something
// happens. It returns the outcomes, by client. A request begins with the client's name and the method.
func underLoad(t *testing.T, clients []client, rate int, callees func(client) []callee, happen func()) []outcomes {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	all := make([]outcomes, len(clients))
	var mu sync.Mutex // guards all
	var running sync.WaitGroup
	for i, c := range clients {
		methods := callees(c)
		running.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			begin, n := time.Now(), 0
			for ctx.Err() == nil {
				for due := int(time.Since(begin).Seconds() * float64(rate)); n < due; n++ {
					m := methods[n%len(methods)]
					o := outcome{request: fmt.Sprintf("%s %s %d", c.name, m.method, n), method: m.method}
					running.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
						defer cancel()
						o.err = m.call(ctx, o.request)
						mu.Lock()
						defer mu.Unlock()
						all[i] = append(all[i], o)
					})
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	happen()
	stop()
	running.Wait()
	return all
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
