// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// plainly makes one call.
func plainly(ctx context.Context, conn *grpc.ClientConn, request string) error {
	return conn.Invoke(ctx, getOrder, wrapperspb.String(request), new(wrapperspb.StringValue))
}

// byHand sends a call, and a parallel one after 20 ms, and cancels the one that is not answered first: hedging with gRPC
// alone.
func byHand(ctx context.Context, conn *grpc.ClientConn, request string) error {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel()
	answers := make(chan error, 2)
	send := func() {
		answers <- plainly(ctx, conn, request)
	}
	both.Go(send)
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case err := <-answers:
		return err
	case <-timer.C:
	}
	both.Go(send)
	if err := <-answers; err != nil {
		return <-answers
	}
	return nil
}

// TestLargeHedges hedges calls with requests of several sizes through proxies, with one of two backends slow: each loser is
// cancelled.
func TestLargeHedges(t *testing.T) {
	required(t)
	const (
		callers, calls = 16, 8
		hedging        = `
methodConfig:
  - name: [{service: interop.v1.OrderService, method: GetOrder}]
    hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.02s, budget: NONE, nonFatalStatusCodes: [UNAVAILABLE]}
`
	)
	shown := table{header: []string{"proxy", "request", "gRPC, nothing cancelled: failed", "gRPC, cancelling by hand: failed", "stagger: failed"}}
	for _, kind := range []struct {
		name   string
		start  func(t *testing.T, ports ...int) *proxy
		stalls bool // when large calls are cancelled
	}{
		{"nginx", func(t *testing.T, ports ...int) *proxy { return nginx(t, "", "", ports...) }, false},
		{"HAProxy", func(t *testing.T, ports ...int) *proxy { return haproxy(t, "", ports...) }, true},
	} {
		for _, size := range []int{16 << 10, 256 << 10} {
			t.Run(fmt.Sprintf("%s/%d KiB", kind.name, size>>10), func(t *testing.T) {
				request := strings.Repeat("x", size)
				row := []string{kind.name, fmt.Sprintf("%d KiB", size>>10)}
				for _, c := range []struct {
					name    string
					call    func(context.Context, *grpc.ClientConn, string) error
					options func() []grpc.DialOption
					cancels bool
				}{
					{bareName, plainly, func() []grpc.DialOption { return bare().options(t) }, false},
					{"cancelling by hand", byHand, func() []grpc.DialOption { return bare().options(t) }, true},
					{ourName, plainly, func() []grpc.DialOption { return retrier(t, hedging).DialOptions() }, true},
				} {
					l := newLedger()
					fast, slow := startBackend(t, l, 5*time.Millisecond, 0), startBackend(t, l, 200*time.Millisecond, 0)
					p := kind.start(t, fast.port, slow.port)
					conn := dial(t, p.dialable(), c.options()...)
					var all sync.WaitGroup
					var failed, made atomic.Int64
					for range callers {
						all.Go(func() {
							for n := 0; n < calls && failed.Load() < callers; n++ { // a stalled connection need
								ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
								if err := c.call(ctx, conn, request); err != nil {
									failed.Add(1)
								}
								made.Add(1)
								cancel()
							}
						})
					}
					all.Wait()
					t.Logf("%s: %d of %d failed", c.name, failed.Load(), made.Load())
					if failed.Load() > 0 && (!kind.stalls || !c.cancels || size < 64<<10) {
						t.Errorf("%s: %d of %d calls failed", c.name, failed.Load(), made.Load())
					}
					row = append(row, fmt.Sprintf("%d of %d", failed.Load(), made.Load()))
					p.Kill()
				}
				shown.rows = append(shown.rows, row)
			})
		}
	}
	evidence.add(14, section{title: "Large requests, cancelled", text: largeText, tables: []table{shown}})
}

const largeText = `
Calls are hedged after 20 ms, and one of two backends is slow, so every second call cancels a losing attempt: by hand with gRPC
alone, and by a hedgingPolicy. In some runs, HAProxy 2.6 stops forwarding on a connection after large requests were cancelled on
it. Then all calls reach their deadline of 2 s, and the test stops after 16 failures.`
