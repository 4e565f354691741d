// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A chain over TCP: a gateway calls a service in the middle, which calls the last one. That is a process of its own,
// which is killed. Times are those of the machine here: nothing else shows what a killed process looks like.

// lastService is the environment variable that makes the test's binary the last service.
const lastService = "STAGGER_TEST_LAST_SERVICE"

// serveLast is the last service. It prints its address, and ends with its standard input.
func serveLast() {
	server, err := testserver.New(testserver.TCP(), testserver.NoRecord())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server.Default(text("here"))
	fmt.Println(server.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	server.Close()
}

// process starts a last service. Its address is free again once it was killed.
func process(t *testing.T) (address string, kill func()) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), lastService+"=1"), t.Output()
	stdin, err := command.StdinPipe() // ends the process with this one
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // which says that it was killed
		_ = stdin.Close()
	})
	t.Cleanup(kill)
	address, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address), kill
}

// stop is when a service tells its caller not to retry.
type stop string

const (
	stopNever  stop = "never"  // it has no server interceptor
	stopWaited stop = "waited" // as the Retrier's server interceptor does
	stopAlways stop = "always" // whenever it cannot connect
)

// startMiddle starts a service that calls the last one.
func startMiddle(t *testing.T, last string, rule stop) *testserver.Server {
	t.Helper()
	r := mustNew(t, mustSet(t, config(brief())), quiet)
	conn, err := grpc.NewClient(last, append(r.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	options := []testserver.Option{testserver.TCP(), testserver.NoRecord(), testserver.Register(unaryOrders(func(ctx context.Context) error {
		return ask(ctx, conn, true)
	}))}
	switch rule {
	case stopWaited:
		options = append(options, testserver.ServerOptions(grpc.ChainUnaryInterceptor(r.UnaryServer())))
	case stopAlways:
		options = append(options, testserver.ServerOptions(grpc.ChainUnaryInterceptor(stopNotConnected)))
	case stopNever:
	}
	return testserver.Start(t, options...)
}

func stopNotConnected(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	reply, err := handle(ctx, req)
	if reasonOf(err) == policy.ReasonNotConnected {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(policy.PushbackTrailer, "-1"))
	}
	return reply, err
}

// brief is the default policy with a tenth of the wait for a connection, so that the tests take a tenth of the time: an
// outage is old after a second.
func brief() policy.RetrySpec {
	retry := policy.DefaultRetry()
	retry.MaxConnectionWait = 300 * ms
	return retry
}

// gatewayStorm is what becomes of a gateway's calls in a part of an outage.
type gatewayStorm struct{ calls, answered, requests int }

func (g gatewayStorm) success() float64 { return float64(g.answered) / float64(g.calls) }
func (g gatewayStorm) String() string {
	return fmt.Sprintf("%.2f, %.2f requests a call", g.success(), float64(g.requests)/float64(g.calls))
}

// gatewayCalls makes 200 calls a second: while the outage is fresh, so that services in the middle wait for its end, and
// when it is old.
func gatewayCalls(t *testing.T, middles []*testserver.Server, kill func()) (fresh, old gatewayStorm) {
	t.Helper()
	var (
		mu   sync.Mutex
		sent int
	)
	r := mustNew(t, mustSet(t, config(brief())), quiet)
	addresses := make([]string, len(middles))
	for i, m := range middles {
		addresses[i] = m.Addr()
	}
	conn, err := testserver.DialAll(middles, append(r.DialOptions(), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
		cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		mu.Lock()
		sent++
		mu.Unlock()
		return invoke(ctx, method, req, reply, cc, opts...)
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	part := func(length time.Duration) (g gatewayStorm) {
		var calls sync.WaitGroup
		tick := time.NewTicker(5 * ms)
		defer tick.Stop()
		sent = 0
		for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
			g.calls++
			calls.Go(func() {
				err := conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					g.answered++
				}
			})
		}
		calls.Wait()
		g.requests = sent
		return g
	}
	if g := part(300 * ms); g.answered != g.calls || g.requests != g.calls {
		t.Errorf("%+v before the outage", g)
	}
	kill()
	fresh = part(900 * ms)
	return fresh, part(1500 * ms)
}

// TestChain_KilledProcess plays two outages that a service in the middle cannot tell apart: the last service is dead for
// all, or for one of three services in the middle. By which rule that tells the gateway to stop, was decided by this:
// the part of the calls that succeed, and requests at the middle for each, while the outage is fresh and when it is old
// (STAGGER_CHAIN_RULES plays them all).
//
//	tells the gateway to stop | dead for all               | one of three cut off
//	                          | fresh        old           | fresh        old
//	never                     | 0 %   1.15   0 %   1.10    | 92 %  1.38   96 %  1.45
//	if calls have waited      | 0 %   1.00   0 %   1.10    | 66 %  1.00   96 %  1.44
//	always                    | 0 %   1.00   0 %   1.00    | 67 %  1.00   67 %  1.00
//
// What the budget's tenth costs a service in the middle is little, and a third of all calls is much. But in a fresh outage,
// each attempt takes as long as the service waits.
func TestChain_KilledProcess(t *testing.T) {
	t.Parallel()
	rules := []stop{stopWaited}
	if os.Getenv("STAGGER_CHAIN_RULES") != "" {
		rules = []stop{stopNever, stopWaited, stopAlways}
	}
	for _, rule := range rules {
		t.Run("dead for all/"+string(rule), func(t *testing.T) {
			t.Parallel()
			last, kill := process(t)
			fresh, old := gatewayCalls(t, []*testserver.Server{startMiddle(t, last, rule)}, kill)
			t.Logf("%s, dead for all: fresh %v; old %v", rule, fresh, old)
			// The budget's tenth, its reserve, and calls that the machine has made late.
			most := func(calls int) int { return calls + calls/10 + 10 }
			if rule == stopWaited && (fresh.requests > most(0)+fresh.calls || fresh.requests+old.requests > most(fresh.calls+old.calls)) {
				t.Errorf("%d and %d requests for %d and %d calls; want one each while calls wait, and a tenth more in all",
					fresh.requests, old.requests, fresh.calls, old.calls)
			}
		})
		t.Run("one of three cut off/"+string(rule), func(t *testing.T) {
			t.Parallel()
			dead, kill := process(t)
			alive, _ := process(t)
			middles := []*testserver.Server{startMiddle(t, dead, rule), startMiddle(t, alive, rule), startMiddle(t, alive, rule)}
			fresh, old := gatewayCalls(t, middles, kill)
			t.Logf("%s, one of three cut off: fresh %v; old %v", rule, fresh, old)
			if rule == stopWaited && old.success() < 0.9 {
				t.Errorf("%v of the calls succeed; want nine of ten, by another service in the middle", old.success())
			}
		})
	}
}
