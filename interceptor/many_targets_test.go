// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// crowd is a Retrier with many connections, whose calls an inner interceptor answers.
type crowd struct {
	*interceptor.Retrier

	mu       *sync.Mutex // guards warnings
	warnings *[]string
}

func newCrowd(t *testing.T) crowd {
	t.Helper()
	c := crowd{mu: new(sync.Mutex), warnings: new([]string)}
	set := testkit.Must(policy.Parse("retry.yaml", []byte(onlyGet)))(t)
	c.Retrier = testkit.Must(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
		if ofNoDeadline(d) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		*c.warnings = append(*c.warnings, d.String())
	}})))(t)
	return c
}

// dialTarget returns a connection. Its target has two spellings, as most do: that of the program, and the canonical one.
func dialTarget(t testing.TB, target int) *grpc.ClientConn {
	t.Helper()
	conn := testkit.Must(grpc.NewClient(fmt.Sprintf("target-%d:443", target), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func fine(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }

func fail(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	return endAsGRPC(opts, status.Error(codes.Unavailable, "no"))
}

// call makes a call that succeeds.
func (c crowd) call(t *testing.T, conn *grpc.ClientConn, method string, options ...grpc.CallOption) {
	t.Helper()
	testkit.NoError(t, c.Unary()(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}, conn, fine, options...))
}

// wantWarnings wants one warning for each of the texts.
func (c crowd) wantWarnings(t *testing.T, texts ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range texts {
		if n := len(slices.DeleteFunc(slices.Clone(*c.warnings), func(w string) bool { return !strings.Contains(w, text) })); n != 1 {
			t.Errorf("%d warnings say %q; want one of %q", n, text, *c.warnings)
		}
	}
	if len(*c.warnings) != len(texts) {
		t.Errorf("warnings %q; want %d", *c.warnings, len(texts))
	}
}

const onlyGet = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`

// A call to the 1,001st target allocates what one to the first does.
func TestManyTargets_Cost(t *testing.T) {
	testkit.Long(t)
	for name, options := range map[string][]grpc.CallOption{"generated code": {grpc.StaticMethod()}, "a name from outside": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t)
				costs := map[int]float64{}
				for n := range 1010 {
					conn := dialTarget(t, n)
					c.call(t, conn, get, options...)
					if n == 0 || n == 999 || n == 1000 || n == 1009 {
						synctest.Wait() // goroutines of new connections allocate, too
						costs[n] = testing.AllocsPerRun(200, func() { c.call(t, conn, get, options...) })
					}
				}
				for n, cost := range costs {
					if cost > costs[0] {
						t.Errorf("a call to target %d allocates %v times; want %v, as to the first", n, cost, costs[0])
					}
				}
			})
		})
	}
}

// A table that is full says so once.
func TestManyTargets_Warnings(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, row := range map[string]struct {
		calls    func(t *testing.T, c crowd)
		warnings []string
	}{
		"1000 targets": {func(t *testing.T, c crowd) {
			t.Helper()
			for n := range 1000 {
				c.call(t, dialTarget(t, n), get, grpc.StaticMethod())
			}
		}, nil},
		"counts of 1001 targets": {func(t *testing.T, c crowd) {
			t.Helper()
			for n := range 1010 {
				c.call(t, dialTarget(t, n), get, grpc.StaticMethod())
			}
		}, []string{`count as target "other"`}},
		"4110 targets, whose balances are full": {func(t *testing.T, c crowd) {
			t.Helper()
			for n := range 4110 {
				c.call(t, dialTarget(t, n), get, grpc.StaticMethod())
			}
		}, []string{`count as target "other"`}},
		"balances of more targets than there may be": {func(t *testing.T, c crowd) {
			t.Helper()
			c.SetMostBalances(3)
			for n := range 10 {
				_ = c.Unary()(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, dialTarget(t, n), fail)
			}
		}, []string{"than the Retrier keeps"}},
		"methods of generated code": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 17_000 {
				c.call(t, conn, fmt.Sprintf("/acme.stock.v1.StockService/Method%d", n), grpc.StaticMethod())
			}
		}, []string{"than the Retrier keeps"}},
		"methods from outside": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 17_000 {
				c.call(t, conn, fmt.Sprintf("/acme.stock.v1.StockService/Method%d", n))
			}
		}, []string{"than the Retrier keeps"}},
		"warnings": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 1100 {
				c.call(t, conn, get, grpc.StaticMethod(), interceptor.MaxAttempts(-n))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if n := len(*c.warnings); n != 100 {
				t.Errorf("%d warnings; want 100", n)
			}
			*c.warnings = (*c.warnings)[len(*c.warnings)-1:]
		}, []string{"further warnings about calls are not given"}},
		"quantiles": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 20 {
				p := mustPolicy(t, spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, HedgingDelay: time.Second, Quantile: float64(50+n) / 100}})
				c.call(t, conn, get, grpc.StaticMethod(), interceptor.Policy(p))
			}
		}, []string{"more than 8 values"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // all within one second
				c := newCrowd(t)
				row.calls(t, c)
				c.wantWarnings(t, row.warnings...)
			})
		})
	}
}

// Policies that callers give by turns, and the Retrier's own between them, cost a call what one of them does.
func TestManyTargets_PoliciesByTurns(t *testing.T) {
	c := newCrowd(t)
	conn := dialTarget(t, 0)
	given := make([][]grpc.CallOption, 0, 5)
	for range 4 {
		retry := plain()
		given = append(given, []grpc.CallOption{grpc.StaticMethod(), interceptor.Policy(mustPolicy(t, spec.Policy{Retry: &retry}))})
	}
	given = append(given, []grpc.CallOption{grpc.StaticMethod()})
	one := testing.AllocsPerRun(200, func() { c.call(t, conn, get, given[0]...) })
	i := 0
	byTurns := testing.AllocsPerRun(200, func() {
		c.call(t, conn, get, given[i%len(given)]...)
		i++
	})
	if byTurns > one {
		t.Errorf("%v allocations a call by turns, %v with one policy", byTurns, one)
	}
}

// A method that others have pushed out is called as before: only what its responses have shown is forgotten.
func TestManyTargets_MethodsComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.SetMostMethods(3)
		conn := dialTarget(t, 0)
		attempts := 0
		for n := range 50 {
			c.call(t, conn, fmt.Sprintf("/acme.stock.v1.StockService/Method%d", n%7))
			attempts = 0
			_ = c.Unary()(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, conn,
				func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
					attempts++
					if attempts < 3 {
						return endAsGRPC(opts, status.Error(codes.Unavailable, "no"))
					}
					return endAsGRPC(opts, nil)
				})
			time.Sleep(10 * time.Minute)
		}
		if attempts != 3 {
			t.Errorf("%d attempts of the last call; want 3", attempts)
		}
		c.wantWarnings(t, "than the Retrier keeps")
	})
}
