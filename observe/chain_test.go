// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// In an outage of a minute at the end of a chain of four services, at 20 calls a second, all of them together log at most 40
// lines: the service above the dead one logs, and those above it are told.
func TestLinesOfAnOutage(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const method = "/acme.orders.v1.OrderService/GetOrder"
		var out synced
		// service starts a service that calls the next one.
		service := func(name string, next *grpc.ClientConn, r *interceptor.Retrier) *testserver.Server {
			s := testserver.Start(t, testserver.ServerOptions(r.ServerOptions()...), testserver.Keep(1))
			s.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
				if next == nil {
					return testserver.OK()
				}
				if err := next.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
					return testserver.Fail(codes.Unavailable, name+": "+err.Error())
				}
				return testserver.OK()
			}))
			return s
		}
		var servers []*testserver.Server
		var conn *grpc.ClientConn
		for _, name := range []string{"payments", "inventory", "orders", "gateway"} {
			logger := slog.New(slog.NewTextHandler(&out, nil)).With("calls", name)
			r := testkit.Must(interceptor.New(testkit.Must(policy.Parse("retry.yaml", []byte(chainFile)))(t), interceptor.WithObserver(observe.Slog(logger))))(t)
			s := service(name, conn, r)
			servers, conn = append(servers, s), s.Dial(t, r.DialOptions()...)
		}
		// The users' connection to the gateway has no retries.
		users := servers[3].Dial(t)
		var calls sync.WaitGroup
		defer calls.Wait()
		const perSecond = 20
		failed := make(chan error, 100*perSecond)
		load := func(length time.Duration) {
			for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(time.Second / perSecond) {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					failed <- users.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
				})
			}
		}
		load(5 * time.Second)
		if lines := out.take(); strings.Contains(lines, "call") {
			t.Errorf("before the outage: %s", lines)
		}
		servers[0].Down()
		load(time.Minute)
		servers[0].Up()
		load(20 * time.Second)
		calls.Wait()
		time.Sleep(time.Minute)
		lines := out.take()
		n, bad := strings.Count(lines, "\n"), 0
		for range len(failed) {
			if <-failed != nil {
				bad++
			}
		}
		if n > 40 || !strings.Contains(lines, "reason=not_connected") || bad < 50*perSecond {
			t.Errorf("%d lines of %d failed calls; want at most 40, and the reason:\n%s", n, bad, lines)
		}
	})
}

const chainFile = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.05s
      maxBackoff: 1s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE]
`
