// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package rollout counts the calls that transparentRetry: DENY loses while servers are replaced gracefully: four backends get
// 500 calls a second of a method that isn't declared idempotent. One backend after the other sends GOAWAY, finishes its calls,
// and is replaced.
//
//	cd lab && go test ./rollout -v -calls 100000            # in virtual time, over links of 1 ms
//	cd lab && go test ./rollout -v -calls 100000 -loopback  # in real time: 200 s, twice
package rollout

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

var (
	calls    = flag.Int("calls", 20_000, "how many calls each client makes")
	rate     = flag.Float64("rate", 500, "calls a second")
	every    = flag.Duration("every", time.Second, "the time between one backend's leave and the next's")
	loopback = flag.Bool("loopback", false, "over TCP on this machine, in real time")
	link     = flag.Duration("link", time.Millisecond, "how long a message is on its way, in virtual time")
)

const (
	backends = 4
	method   = "/stagger.rollout.v1.Shop/Buy"
	served   = 5 * time.Millisecond // a call, by a backend
)

// TestRollout replaces servers that leave in both ways, with a client of each kind for both.
func TestRollout(t *testing.T) {
	for _, server := range []struct {
		name string
		make func() backend
		lose bool // calls in transit when a backend left
	}{
		{"GOAWAY twice, as gRPC's servers", newGraceful, false},
		{"GOAWAY once, as nginx", newOnce, true},
	} {
		t.Run(server.name, func(t *testing.T) {
			play := func(t *testing.T) {
				bare := failures(t, server.make, grpc.WithDisableRetry())
				denied := failures(t, server.make, denies(t)...)
				t.Logf("of %d calls fail: gRPC alone %d, with transparentRetry: DENY %d; %.1f of 10,000 more",
					*calls, bare, denied, float64(denied-bare)*1e4/float64(*calls))
				if bare > 0 {
					t.Errorf("%d calls fail without DENY; want none", bare)
				}
				if lost := denied > bare; lost != server.lose && !*loopback {
					t.Errorf("%d calls are lost by DENY; want some: %v", denied-bare, server.lose)
				}
			}
			if *loopback {
				play(t)
			} else {
				synctest.Test(t, play)
			}
		})
	}
}

// denies returns the dial options of a client whose policies deny transparent retries to the method, which isn't declared
// idempotent.
func denies(tb testing.TB) []grpc.DialOption {
	tb.Helper()
	retry := policy.DefaultRetry()
	set := must.Get(policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
		Names: []string{"/stagger.rollout.v1.Shop/"},
		Spec:  policy.Spec{Retry: &retry, TransparentRetry: new(false)},
	}}}))(tb)
	r := must.Get(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(tb)
	return r.DialOptions()
}

// failures plays one client, and returns how many of its calls fail.
func failures(t *testing.T, newBackend func() backend, options ...grpc.DialOption) int {
	t.Helper()
	var (
		addresses []resolver.Address
		places    []*place
		running   sync.WaitGroup
	)
	for i := range backends {
		p := &place{newBackend: newBackend, listener: listen(t), backend: newBackend()}
		running.Go(p.run)
		places = append(places, p)
		addresses = append(addresses, resolver.Address{Addr: fmt.Sprintf("%s/%d", p.listener.Addr(), i)})
	}
	names := manual.NewBuilderWithScheme("rollout")
	names.InitialState(resolver.State{Addresses: addresses})
	conn := must.Get(grpc.NewClient("rollout:///shop", append(options,
		grpc.WithResolvers(names),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithContextDialer(dialer(places)))...))(t)
	over := make(chan struct{})
	running.Go(func() { replace(places, over) })
	failed := load(t, conn)
	close(over)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range places {
		_ = p.listener.Close()
		p.leave()
	}
	running.Wait()
	return failed
}

// replace replaces one backend after the other.
func replace(places []*place, over <-chan struct{}) {
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		case <-tick.C:
			places[i%len(places)].replace()
		}
	}
}

// load makes the calls, at random times, and returns how many fail.
func load(t *testing.T, conn *grpc.ClientConn) (failed int) {
	t.Helper()
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		texts   = map[string]int{}
		chance  = rand.New(rand.NewPCG(1, 2))
		next    = time.Now()
	)
	for range *calls {
		next = next.Add(time.Duration(chance.ExpFloat64() / *rate * float64(time.Second)))
		time.Sleep(time.Until(next))
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
				texts[err.Error()]++
			}
		})
	}
	running.Wait()
	for text, n := range texts {
		t.Logf("%d × %s", n, text)
	}
	return failed
}
