// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A chain over TCP: a gateway calls a service in the middle, which calls the last one. The last one is a separate process,
// which is killed. Times are real: only that shows the effects of a killed process.

// lastService is the environment variable that makes the test's binary the last service.
const lastService = "STAGGER_TEST_LAST_SERVICE"

// serveLast is the last service. It prints its address, and ends with its standard input.
func serveLast() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server, err := testserver.New(testserver.Listener(lis), testserver.Keep(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server.On("*", text("here"))
	fmt.Println(server.Target())
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
		_ = command.Wait() // an error, because it was killed
		_ = stdin.Close()
	})
	t.Cleanup(kill)
	address, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address), kill
}

// startMiddle starts a service that calls the last one. Without guard, it has no server interceptor. Its health service
// says that it does not serve while it cannot connect.
func startMiddle(t *testing.T, last string, guard bool) *testserver.Server {
	t.Helper()
	r := mustNew(t, mustSet(t, config(brief())), quiet)
	conn, err := grpc.NewClient(last, append(r.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	checked := health.NewServer()
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		report(t.Context(), conn, checked)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-reported
	})
	options := []testserver.Option{
		testserver.Listener(must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)), testserver.Keep(0),
		testserver.Register(unaryOrders(func(ctx context.Context) error { return ask(ctx, conn, true) })),
		testserver.Register(func(r grpc.ServiceRegistrar) { healthpb.RegisterHealthServer(r, checked) }),
	}
	if guard {
		options = append(options, testserver.ServerOptions(r.ServerOptions()...))
	}
	return testserver.Start(t, options...)
}

// report has a health service say whether a connection that the service cannot do without can be made.
func report(ctx context.Context, conn *grpc.ClientConn, healthServer *health.Server) {
	for state := conn.GetState(); state != connectivity.Shutdown; state = conn.GetState() {
		serving := healthpb.HealthCheckResponse_SERVING
		if state == connectivity.TransientFailure {
			serving = healthpb.HealthCheckResponse_NOT_SERVING
		}
		healthServer.SetServingStatus("", serving)
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// brief is the default policy with a tenth of the wait for a connection, so that the tests take a tenth of the time: an
// outage is old after a second.
func brief() policy.RetrySpec {
	retry := policy.DefaultRetry()
	retry.MaxConnectionWait = 300 * ms
	return retry
}

// gatewayStorm has the results of a gateway's calls in a part of an outage.
type gatewayStorm struct{ calls, answered, requests int }

func (g gatewayStorm) success() float64 { return float64(g.answered) / float64(g.calls) }
func (g gatewayStorm) each() float64    { return float64(g.requests) / float64(g.calls) }
func (g gatewayStorm) String() string {
	return fmt.Sprintf("%.2f, %.2f requests a call", g.success(), g.each())
}

// gatewayCalls makes 100 calls a second: while the outage is fresh, so that services in the middle wait for its end, and
// when it is old.
func gatewayCalls(t *testing.T, middles []*testserver.Server, checks bool, kill func()) (fresh, old gatewayStorm) {
	t.Helper()
	var (
		mu   sync.Mutex
		sent int
	)
	r := mustNew(t, mustSet(t, config(brief())), quiet)
	balancing := `{"loadBalancingConfig": [{"round_robin": {}}]}`
	if checks {
		balancing = `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}`
	}
	conn, err := testserver.DialAll(middles, append(r.DialOptions(), grpc.WithDefaultServiceConfig(balancing), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
		cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		mu.Lock()
		sent++
		mu.Unlock()
		return invoke(ctx, method, req, reply, cc, opts...)
	}))...)
	if err != nil {
		t.Error(err)
		return fresh, old
	}
	defer conn.Close()
	part := func(length time.Duration) (g gatewayStorm) {
		var calls sync.WaitGroup
		tick := time.NewTicker(10 * ms)
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
// all, or for one of three services in the middle. The part of the calls that succeed, and requests at the middle for
// each, while calls wait for the end of the outage and when it is old:
//
//	the middle                                 | dead for all             | one of three cut off
//	does not tell the gateway to stop          | 0 %  1.15   0 %  1.10    | 91 %  1.37   89–96 %
//	tells it to stop, as the interceptors do   | 0 %  1.00   0 %  1.00    | 67 %  1.00   67 %  1.00
//	so too, and the gateway checks its health  | 0 %  1.00   0 %  1.00    | 99 %  1.00  100 %  1.00
func TestChain_KilledProcess(t *testing.T) {
	t.Parallel()
	var outages sync.WaitGroup // at the same time: they wait far more than they do
	defer outages.Wait()
	for name, row := range map[string]struct {
		guard, checks bool
		requests      float64 // a call, at most, when the last service is dead for all
		success       float64 // at least, when one of three is cut off for long
	}{
		"not told": {false, false, 1.3, 0.75},
		"told":     {true, false, 1.1, 0.6},
		"health":   {true, true, 1.1, 0.99},
	} {
		last, killLast := process(t)
		middle := []*testserver.Server{startMiddle(t, last, row.guard)}
		outages.Go(func() {
			fresh, old := gatewayCalls(t, middle, row.checks, killLast)
			t.Logf("%s, dead for all: fresh %v; old %v", name, fresh, old)
			if fresh.each() > row.requests || old.each() > row.requests {
				t.Errorf("%s, dead for all: fresh %v; old %v; want at most %v requests a call", name, fresh, old, row.requests)
			}
		})
		dead, killDead := process(t)
		alive, _ := process(t)
		middles := []*testserver.Server{startMiddle(t, dead, row.guard), startMiddle(t, alive, row.guard), startMiddle(t, alive, row.guard)}
		outages.Go(func() {
			fresh, old := gatewayCalls(t, middles, row.checks, killDead)
			t.Logf("%s, one of three cut off: fresh %v; old %v", name, fresh, old)
			if old.success() < row.success {
				t.Errorf("%s, one of three cut off: %v; want %v of the calls to succeed", name, old, row.success)
			}
		})
	}
}
