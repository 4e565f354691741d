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
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// crowd is a Retrier with many connections, whose calls an inner interceptor answers.
type crowd struct {
	*interceptor.Retrier

	mu       *sync.Mutex // guards warnings
	warnings *[]string
}

func newCrowd(t *testing.T, file string) crowd {
	t.Helper()
	c := crowd{mu: new(sync.Mutex), warnings: new([]string)}
	set := must.Get(policy.Parse("retry.yaml", []byte(file)))(t)
	c.Retrier = must.Get(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
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
	conn := must.Get(grpc.NewClient(fmt.Sprintf("target-%d:443", target), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
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
	must.Do(t, c.Unary()(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}, conn, fine, options...))
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

// A call to the 1,001st target allocates what one to the first does, also if targets share a balance. Time stands still: once a
// second, a call looks whether there is room for a balance of its own.
func TestManyTargets_Cost(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"generated code": {grpc.StaticMethod()}, "a name from outside": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, onlyGet)
				c.SetMostBalances(1005)
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
		}, []string{"share one balance"}},
		"methods of generated code": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 17_000 {
				c.call(t, conn, fmt.Sprintf("/acme.stock.v1.StockService/Method%d", n), grpc.StaticMethod())
			}
		}, []string{"generated code calls more methods"}},
		"methods from outside": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 5000 {
				c.call(t, conn, fmt.Sprintf("/acme.stock.v1.StockService/Method%d", n))
			}
		}, []string{"calls without generated code have more methods"}},
		"warnings": {func(t *testing.T, c crowd) {
			t.Helper()
			conn := dialTarget(t, 0)
			for n := range 1100 {
				c.call(t, conn, get, grpc.StaticMethod(), interceptor.MaxAttempts(-n))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if n := len(*c.warnings); n != 999 { // and one of calls without a deadline
				t.Errorf("%d warnings; want 999", n)
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
				c := newCrowd(t, onlyGet)
				row.calls(t, c)
				c.wantWarnings(t, row.warnings...)
			})
		})
	}
}
