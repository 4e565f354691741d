// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// enough is a number of calls for the time that there is.
func enough(calls int) int {
	if slack > 0 || testing.Short() {
		return calls / 20
	}
	return calls
}

// crowd makes calls, each with its number, from a hundred goroutines that pause between them: else all would
// happen in the same moment of virtual time.
func crowd(calls int, call func(n int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= calls {
					return
				}
				call(n)
				time.Sleep(time.Duration(n%20) * ms)
			}
		})
	}
	wg.Wait()
}

// outages takes a server down for half a second, again and again.
func outages(ctx context.Context, s *testserver.Server) {
	for {
		for _, change := range []func(){s.Down, s.Up} {
			select {
			case <-time.After(500 * ms):
				change()
			case <-ctx.Done():
				s.Up()
				return
			}
		}
	}
}

// Law 3, over real gRPC: what may have taken effect is not repeated. Nobody has declared the methods
// safe, and everything goes wrong, while the policies repeat whatever they may.
func TestNothingTakesEffectTwiceWhateverTheNetworkDoes(t *testing.T) {
	t.Parallel()
	calls := enough(100_000)
	e := newEffects(calls)
	var again atomic.Int64 // calls that succeeded after attempts that never left the client
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t, testserver.NoRecord())
		srv.Default(e.serve(faults()))
		r := mustNew(t, mustSet(t, eager()), interceptor.WithObserver(interceptor.Observer{
			Warning: func(policy.Diagnostic) {},
			Call: func(_ context.Context, e interceptor.CallEvent) {
				if e.Attempts > 1 && e.Err == nil {
					again.Add(1)
				}
			},
		}))
		fast := grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * ms, Multiplier: 1, MaxDelay: 50 * ms}})
		var conns []*grpc.ClientConn
		for range 8 {
			conns = append(conns, srv.Dial(t, append(r.DialOptions(), fast)...))
		}
		ctx, stop := context.WithCancel(t.Context())
		go outages(ctx, srv)
		crowd(calls, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			e.answered[n] = act(ctx, conns[n%len(conns)], n) == nil
		})
		stop()
	})
	e.check(t, calls/10)
	if again.Load() < int64(calls/1000) {
		t.Errorf("%d calls succeeded after attempts that never left the client; want more", again.Load())
	}
	t.Logf("%d calls, %d repeated and answered", calls, again.Load())
}

// act makes a call with its number: of each policy, as unary calls and as streams.
func act(ctx context.Context, conn *grpc.ClientConn, n int) error {
	method := "/acme.eager.v1." + []string{"Beside", "InPlace", "Hedged"}[n%3] + "/Create"
	req, reply := wrapperspb.String(strconv.Itoa(n)), new(wrapperspb.StringValue)
	if n%2 == 0 {
		return conn.Invoke(ctx, method, req, reply)
	}
	stream, err := conn.NewStream(ctx, []*grpc.StreamDesc{clientStream, serverStream, bidiStream}[n/2%3], method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(req); err == nil {
		_ = stream.CloseSend()
	}
	err = stream.RecvMsg(reply)
	for range 2 { // to the end
		_ = stream.RecvMsg(new(wrapperspb.StringValue))
	}
	return err
}
