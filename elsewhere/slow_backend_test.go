// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/grpctest"
	"github.com/stagger-go/stagger/testserver"
)

const impatientFile = `
loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.1s, budget: NONE}
`

// A decision on a slow attempt has the address of its backend while that still runs: of the first attempt, and of a hedge.
func TestSlowAttemptHasBackend(t *testing.T) {
	for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var slow []string
				observer := interceptor.WithObserver(interceptor.Observer{Decision: func(_ context.Context, e interceptor.Event) {
					if e.Slow() {
						slow = append(slow, fmt.Sprint(e.Peer, " after ", e.Elapsed))
					}
				}})
				r := newRetrier(t, mustParse(t, impatientFile), observer, interceptor.WithRandom(func() float64 { return 0 }))
				b := grpctest.Start(t, 3, `{}`, r.DialOptions()...)
				for _, s := range b.Servers {
					s.On("*", testserver.OK())
				}
				call := func() error { return exchange(t.Context(), b.Conn, desc, "/acme.orders.v1.OrderService/GetOrder") }
				for range 20 { // so that a hedge is known to be worth while
					b.VisitAll(t, call)
				}
				b.Servers[0].On("*", testserver.Hang())
				b.Servers[1].On("*", testserver.Hang())
				b.Servers[2].On("*", testserver.OK().Delay(50*time.Millisecond))
				for len(slow) == 0 {
					testkit.NoError(t, call())
				}
				visits := b.Visits()
				var want []string
				for _, visited := range visits[len(visits)-len(slow)-1 : len(visits)-1] { // the last one answers
					want = append(want, fmt.Sprintf("backend-%d after 100ms", visited))
				}
				if fmt.Sprint(slow) != fmt.Sprint(want) {
					t.Errorf("%q; want %q of the visits %v", slow, want, visits)
				}
			})
		})
	}
}
