// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/migration"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// In each step of docs/set-up.md, a failing call has as many requests as the old retries or stagger make, and never those of both.
func TestSteps(t *testing.T) {
	t.Parallel()
	old := retry.UnaryClientInterceptor(retry.WithMax(3), retry.WithCodes(codes.Unavailable),
		retry.WithBackoff(retry.BackoffLinear(100*time.Millisecond)))
	for name, row := range map[string]struct {
		mode       policy.Mode
		oldRetries bool
		requests   int
	}{
		"2: observe":                 {policy.ModeObserve, true, 3},
		"3: enforce":                 {policy.ModeEnforce, false, 3},
		"what step 3 prevents: both": {policy.ModeEnforce, true, 9},
		"between the steps: the flag comes first": {policy.ModeObserve, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(getOrder, testserver.Fail(codes.Unavailable, "broken"))
				set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}`))
				if err != nil {
					t.Fatal(err)
				}
				retrier, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}))
				if err != nil {
					t.Fatal(err)
				}
				if err := retrier.SetMode(interceptor.ModeSwitch{Mode: row.mode}); err != nil {
					t.Fatal(err)
				}
				conn := server.Dial(t, migration.Steps(retrier, row.oldRetries, old)...)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := conn.Invoke(ctx, getOrder, new(emptypb.Empty), new(emptypb.Empty)); err == nil {
					t.Error("no error")
				}
				if got := server.Count(getOrder); got != row.requests {
					t.Errorf("%d requests; want %d", got, row.requests)
				}
			})
		})
	}
}
