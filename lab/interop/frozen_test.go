// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/wrapperspb"

	_ "github.com/stagger-go/stagger/elsewhere" // the load balancing policy of the file
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
)

// frozenEnv has the port of a process of these tests that is a backend, and nothing else.
const frozenEnv = "STAGGER_INTEROP_BACKEND"

// serveBackend is that process.
func serveBackend(port string) error {
	lis, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	b := &backend{work: 5 * time.Millisecond, ledger: newLedger()}
	return grpc.NewServer(grpc.UnknownServiceHandler(b.handle)).Serve(lis)
}

const frozenPolicy = `
loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]
methodConfig:
  - name: [{service: interop.v1.OrderService, method: GetOrder}]
    timeout: 2s
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE],
      perAttemptTimeout: 0.3s}`

// TestFrozen stops a process for 20 s under load and wakes it. Its connections stay open all the time. Calls to it alone end with
// their deadlines, with few more requests, and succeed again when it is awake; with another backend beside it, most succeed.
func TestFrozen(t *testing.T) {
	required(t)
	port := testkit.Port(t)
	frozen := testkit.StartProcess(t, nil, []string{fmt.Sprintf("%s=%d", frozenEnv, port)}, testkit.Must(os.Executable())(t))
	listening(t, port)
	beside := startBackend(t, newLedger(), 5*time.Millisecond)
	alone, pair := newFrozenLoad(t, port), newFrozenLoad(t, port, beside.port)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, l := range []*frozenLoad{alone, pair} {
		running.Go(func() { l.run(ctx) })
	}
	pass(t, 3*time.Second)
	for _, l := range []*frozenLoad{alone, pair} {
		if calls, good, _ := l.since(); good == 0 {
			t.Errorf("none of %d calls succeeds before", calls)
		}
	}
	frozen.Signal(t, syscall.SIGSTOP)
	pass(t, 20*time.Second)
	if calls, good, attempts := alone.since(); good*10 > calls || attempts*4 > calls*5 {
		t.Errorf("alone: %d of %d calls succeed, with %d attempts; want few, and a quarter more attempts at most", good, calls, attempts)
	}
	if calls, good, attempts := pair.since(); good*10 < calls*9 || attempts > calls*2 {
		t.Errorf("with another backend: %d of %d calls succeed, with %d attempts", good, calls, attempts)
	}
	frozen.Signal(t, syscall.SIGCONT)
	await(t, 10*time.Second, "all calls of a second succeed", func() bool {
		alone.since()
		pair.since()
		pass(t, time.Second)
		calls, good, attempts := alone.since()
		both, goodBoth, _ := pair.since()
		return good == calls && calls > 0 && goodBoth == both && attempts <= calls+calls/4
	})
	stop()
	running.Wait()
}

// frozenLoad makes 30 calls a second, and counts them when they end.
type frozenLoad struct {
	conn                  *grpc.ClientConn
	calls, good, attempts atomic.Int64
}

func newFrozenLoad(t *testing.T, ports ...int) *frozenLoad {
	t.Helper()
	l := new(frozenLoad)
	count := func(_ context.Context, e interceptor.CallEnd) { l.attempts.Add(int64(e.Attempts)) }
	r := retrier(t, frozenPolicy, interceptor.WithObserver(interceptor.Observer{CallEnd: count}))
	fixed := manual.NewBuilderWithScheme("frozen")
	var state resolver.State
	for _, port := range ports {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address(port)})
	}
	fixed.InitialState(state)
	l.conn = dial(t, "frozen:///"+fmt.Sprint(len(ports)), append(r.DialOptions(), grpc.WithResolvers(fixed))...)
	return l
}

func (l *frozenLoad) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(time.Second / 30)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		running.Go(func() {
			err := l.conn.Invoke(context.WithoutCancel(ctx), getOrder, wrapperspb.String("frozen"), new(wrapperspb.StringValue))
			if l.calls.Add(1); err == nil {
				l.good.Add(1)
			}
		})
	}
}

// since returns what has ended since the last time.
func (l *frozenLoad) since() (calls, good, attempts int64) {
	return l.calls.Swap(0), l.good.Swap(0), l.attempts.Swap(0)
}
