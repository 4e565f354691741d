// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// successPolicies are policies of each kind of unary call: a sequence, and those whose attempts may run in parallel.
func successPolicies() map[string]spec.Config {
	timed := plain()
	timed.PerAttemptTimeout = time.Minute
	return map[string]spec.Config{"sequence": config(plain()), "timeout": config(timed), "hedges": hedged()}
}

func TestUnarySuccess_StartsNoGoroutine(t *testing.T) {
	for name, c := range successPolicies() {
		t.Run(name, func(t *testing.T) {
			unary := mustNew(t, mustSet(t, c), quiet).Unary()
			most, running := 0, 0
			inside := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				running = runtime.NumGoroutine()
				return nil
			}
			for range 100 {
				before := runtime.NumGoroutine()
				_ = unary(t.Context(), get, new(emptypb.Empty), new(emptypb.Empty), nil, inside, grpc.StaticMethod())
				most = max(most, running-before, runtime.NumGoroutine()-before)
			}
			if most > 0 {
				t.Errorf("%d goroutines more during a call or after it; want none", most)
			}
		})
	}
}

// stuck is a budget that never answers while it is asked for an extra attempt.
type stuck struct{ asked, release chan struct{} }

func (s stuck) Observe(time.Time, budget.Event) {}

func (s stuck) Allow(time.Time, budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	s.asked <- struct{}{}
	<-s.release
	return budget.No, nil
}

// A call that holds its lock, because a budget doesn't answer it, holds up no call that succeeds.
func TestUnarySuccess_WaitsForNoOtherCall(t *testing.T) {
	t.Parallel()
	for name, c := range successPolicies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stuck{make(chan struct{}), make(chan struct{})}
			for i := range c.Methods {
				m := &c.Methods[i]
				if m.Retry != nil {
					m.Retry.Budget = ""
				}
				if m.Hedge != nil {
					m.Hedge.Budget = ""
				}
			}
			unary := mustNew(t, mustSet(t, c), quiet, interceptor.WithBudget("", func(string) budget.Budget { return s })).Unary()
			call := func(err error) chan error {
				ended := make(chan error, 1)
				ends := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
					_ = fillAndEnd(ctx, method, req, reply, cc, opts...) // a server has seen it
					return err
				}
				go func() {
					ended <- unary(t.Context(), get, new(emptypb.Empty), new(emptypb.Empty), nil, ends, grpc.StaticMethod())
				}()
				return ended
			}
			fails := call(status.Error(codes.Unavailable, "down"))
			select {
			case <-s.asked:
			case err := <-fails:
				t.Fatalf("%v, without a question to the budget", err)
			}
			select {
			case err := <-call(nil):
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute): // only if the test fails
				t.Error("a call that succeeds waits for another one")
			}
			close(s.release)
			if status.Code(<-fails) != codes.Unavailable {
				t.Error("the call that fails has another error")
			}
		})
	}
}
