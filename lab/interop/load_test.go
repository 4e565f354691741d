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
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// client is a kind of retries, under test or for comparison.
type client struct {
	name    string
	options func(*testing.T) []grpc.DialOption
}

const (
	bareName    = "gRPC, no retries"
	retriesName = "gRPC's retries"
	ourName     = "stagger"
)

// bare is gRPC without retries, except those in its transport.
func bare() client {
	return client{name: bareName, options: func(*testing.T) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithDisableRetry()}
	}}
}

// grpcRetries is gRPC with a service config that retries every method.
func grpcRetries() client {
	const config = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "1s",
		"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	return client{name: retriesName, options: func(*testing.T) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}
	}}
}

// ours is stagger with the policies of a user's first file.
func ours() client {
	const retry = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}`
	return client{name: ourName, options: func(t *testing.T) []grpc.DialOption {
		return retrier(t, "methodConfig: [{name: [{service: interop.v1.OrderService, method: GetOrder}], "+retry+"}, {name: [{}], "+retry+"}]").DialOptions()
	}}
}

func retrier(t *testing.T, text string, opts ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(text)))(t)
	return testkit.Must(interceptor.New(set, opts...))(t)
}

// dial connects to a target on loopback; the connection closes when the test ends.
func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := testkit.Must(grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// outcome is the outcome of a call.
type outcome struct {
	request string
	method  string
	err     error
}

// underLoad makes this many calls a second from each client, of two methods in turn and however earlier ones end, while something
// happens. It returns the outcomes, by client. A request begins with the client's name and the method.
func underLoad(t *testing.T, clients []client, rate int, target string, happen func()) []outcomes {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	all := make([]outcomes, len(clients))
	var mu sync.Mutex // guards all
	var running sync.WaitGroup
	for i, c := range clients {
		conn := dial(t, target, c.options(t)...)
		running.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			begin, n := time.Now(), 0
			for ctx.Err() == nil {
				for due := int(time.Since(begin).Seconds() * float64(rate)); n < due; n++ {
					method := []string{getOrder, createOrder}[n%2]
					o := outcome{request: fmt.Sprintf("%s %s %d", c.name, method, n), method: method}
					running.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
						defer cancel()
						o.err = conn.Invoke(ctx, method, wrapperspb.String(o.request), new(wrapperspb.StringValue))
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
