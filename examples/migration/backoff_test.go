// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The settings that docs/coming-from.md gives for an option wait as long before each retry as the option does, with the shortest and the
// longest wait of 100 calls within a twentieth of the bounds.
func TestBackoff(t *testing.T) {
	const d, longest = 100 * time.Millisecond, 300 * time.Millisecond
	middleware := func(b retry.BackoffFunc) grpc.UnaryClientInterceptor {
		return retry.UnaryClientInterceptor(retry.WithMax(4), retry.WithCodes(codes.Unavailable), retry.WithBackoff(b))
	}
	failsafe := failsafegrpc.NewRetryPolicyBuilder[any]().WithMaxAttempts(4)
	type bounds [2]time.Duration
	exactly := func(d time.Duration) bounds { return bounds{d, d} }
	about := func(d time.Duration) bounds { return bounds{d * 4 / 5, d * 6 / 5} }
	for name, row := range map[string]struct {
		theirs grpc.UnaryClientInterceptor
		ours   string
		want   [3]bounds
	}{
		"BackoffLinear": {
			middleware(retry.BackoffLinear(d)),
			`"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1, "jitter": "NONE"`,
			[3]bounds{exactly(d), exactly(d), exactly(d)},
		},
		"BackoffLinearWithJitter": {
			middleware(retry.BackoffLinearWithJitter(d, 0.2)),
			`"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1, "jitter": "PROPORTIONAL"`,
			[3]bounds{about(d), about(d), about(d)},
		},
		"BackoffExponential": {
			middleware(retry.BackoffExponential(d)),
			`"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "jitter": "NONE"`,
			[3]bounds{exactly(d), exactly(2 * d), exactly(4 * d)},
		},
		"BackoffExponentialWithJitter": {
			middleware(retry.BackoffExponentialWithJitter(d, 0.2)),
			`"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "jitter": "PROPORTIONAL"`,
			[3]bounds{about(d), about(2 * d), about(4 * d)},
		},
		"WithDelay": {
			failsafegrpc.NewUnaryClientInterceptor(failsafe.WithDelay(d).Build()),
			`"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1, "jitter": "NONE"`,
			[3]bounds{exactly(d), exactly(d), exactly(d)},
		},
		"WithBackoff": {
			failsafegrpc.NewUnaryClientInterceptor(failsafe.WithBackoff(d, longest).Build()),
			`"initialBackoff": "0.1s", "maxBackoff": "0.3s", "backoffMultiplier": 2, "jitter": "NONE"`,
			[3]bounds{exactly(d), exactly(2 * d), exactly(longest)},
		},
		"WithJitterFactor": {
			failsafegrpc.NewUnaryClientInterceptor(failsafe.WithBackoff(d, longest).WithJitterFactor(0.2).Build()),
			`"initialBackoff": "0.1s", "maxBackoff": "0.3s", "backoffMultiplier": 2, "jitter": "PROPORTIONAL"`,
			[3]bounds{about(d), about(2 * d), about(longest)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set, err := policy.Parse("retry.yaml", []byte(`{"methodConfig": [{
					"name": [{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}],
					"retryPolicy": {"maxAttempts": 4, "budget": "NONE", "retryableStatusCodes": ["UNAVAILABLE"], `+row.ours+`}}]}`))
				if err != nil {
					t.Fatal(err)
				}
				retrier, err := interceptor.New(set)
				if err != nil {
					t.Fatal(err)
				}
				defer retrier.Close()
				for who, options := range map[string][]grpc.DialOption{
					"the option": {grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(row.theirs)}, "stagger": retrier.DialOptions(),
				} {
					for i, got := range waits(t, options) {
						for end, want := range row.want[i] {
							if off := (got[end] - want).Abs(); off > want/20 {
								t.Errorf("%s: before retry %d, %v; want %v", who, i+1, got, row.want[i])
							}
						}
					}
				}
			})
		})
	}
}

// waits returns the shortest and the longest wait before each retry of calls that fail four times.
func waits(t *testing.T, options []grpc.DialOption) (found [3][2]time.Duration) {
	t.Helper()
	server := testserver.Start(t)
	var times []time.Time
	server.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
		times = append(times, time.Now())
		return testserver.Fail(codes.Unavailable)
	}))
	conn := server.Dial(t, options...)
	for range 100 {
		times = nil
		if err := conn.Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}); err == nil || len(times) != 4 {
			t.Fatal(fmt.Sprint(err, " after ", len(times), " attempts; want an error after 4"))
		}
		for i := range found {
			wait := times[i+1].Sub(times[i])
			found[i][1] = max(found[i][1], wait)
			if found[i][0] == 0 || wait < found[i][0] {
				found[i][0] = wait
			}
		}
	}
	return found
}
