// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

const threeAttempts = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.2s}
`

// unbounded has no budget: the default one pays for few attempts beside slow ones, until they have helped.
var unbounded = strings.ReplaceAll(threeAttempts, "perAttemptTimeout:", "budget: NONE, perAttemptTimeout:")

// Two of three backends fail or hang, and every call succeeds with at most three attempts, whichever of its three backends the policy picks
// first. All have answered before, so that it is known what is usual.
func TestTwoOfThree(t *testing.T) {
	for name, row := range map[string]struct {
		fault testserver.Step
		file  string
		after []grpc.DialOption
	}{
		"fail, named by the file":  {testserver.Fail(codes.Unavailable), "loadBalancingConfig: " + aroundRoundRobin + threeAttempts, nil},
		"hang, named by the file":  {testserver.Hang(), "loadBalancingConfig: " + aroundRoundRobin + unbounded, nil},
		"fail, by the dial option": {testserver.Fail(codes.Unavailable), threeAttempts, []grpc.DialOption{elsewhere.DialOption()}},
		"hang, by the dial option": {testserver.Hang(), unbounded, []grpc.DialOption{elsewhere.DialOption()}},
	} {
		t.Run(name, func(t *testing.T) {
			times := testkit.NewTimes(0, 0, 2)
			playCluster(t, 3, row.file, func(t *testing.T, c cluster) {
				for _, s := range c.Servers {
					s.On("*", testserver.OK().Delay(20*ms))
				}
				call := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					return c.call(ctx, get)
				}
				for range 30 {
					if err := call(); err != nil {
						t.Fatal(err)
					}
				}
				c.Servers[0].On("*", row.fault)
				c.Servers[1].On("*", row.fault)
				for i := range 100 {
					time.Sleep(times.Wait(2))
					c.Visits()
					err := call()
					synctest.Wait()
					if visits := c.Visits(); err != nil || len(visits) > 3 || !parted(visits) {
						t.Fatalf("call %d: %v (%s), backends %v; want success, and each backend at most once", i, err,
							reasonOf(err), visits)
					}
				}
			}, row.after...)
		})
	}
}

// The first call of a connection has a record, too, though it begins before the connection has a policy.
func TestFirstCallOfAConnection(t *testing.T) {
	playCluster(t, 4, retryFile, func(t *testing.T, c cluster) {
		for _, s := range c.Servers {
			s.On("*", testserver.Fail(codes.Unavailable))
		}
		_ = c.call(t.Context(), get)
		if visits := c.Visits(); len(visits) != 4 || !parted(visits) {
			t.Errorf("backends %v; want all four, each once", visits)
		}
	}, elsewhere.DialOption())
}

// A zone fails whose backends follow each other in the list. If a client of a few calls a second retried at one after the other, its retries
// would fail and spend its budget.
func TestFailedZone(t *testing.T) {
	file := "loadBalancingConfig: " + aroundRoundRobin + strings.ReplaceAll(threeAttempts, ", perAttemptTimeout: 0.2s", "")
	playCluster(t, 12, file, func(t *testing.T, c cluster) {
		for i, s := range c.Servers {
			s.On("*", testserver.OK().Delay(20*ms))
			if i < 4 {
				s.On("*", testserver.Fail(codes.Unavailable))
			}
		}
		succeeded := 0
		for range 500 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			if c.call(ctx, get) == nil {
				succeeded++
			}
			cancel()
			time.Sleep(150 * ms)
		}
		if succeeded < 470 {
			t.Errorf("%d of 500 calls succeed; want at least 470", succeeded)
		}
	})
}
