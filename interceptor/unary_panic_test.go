// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// till is a purse that counts every permit which it gets back, however the attempt has gone.
type till struct {
	*purse

	settled int
}

func (b *till) Settle(now time.Duration, p budget.Permit, helped bool) {
	b.count(&b.settled)
	b.purse.Settle(now, p, helped)
}

// held is what calls have got from their gates and not given back; "" for nothing.
func held(r *interceptor.Retrier, f *fuse, b *till) string {
	permits, calls := len(b.asked)-b.returned-b.settled, b.started-b.ok-b.bad
	if leaves := f.granted - len(f.told); permits != 0 || calls != 0 || leaves != 0 || r.Waiting() != 0 {
		return fmt.Sprintf("%d permits, %d calls, %d leaves of the breaker, %d places", permits, calls, leaves, r.Waiting())
	}
	return ""
}

// paid lets the default budget pay for what c allows.
func paid(c policy.Config) {
	for i := range c.Methods {
		if m := &c.Methods[i]; m.Hedge != nil {
			m.Hedge.Budget = ""
		} else {
			m.Retry.Budget = ""
		}
	}
}

// Whoever panics: the first attempt, the second, one beside another, an observer, a classifier.
func TestUnaryPanic(t *testing.T) {
	for mode, c := range map[string]policy.Config{
		"retries": config(plain()), "hedges": hedged(), "beside": config(besides()), "one attempt": {},
	} {
		paid(c)
		for _, culprit := range []string{"attempt 1", "attempt 2", "attempts", "decisions", "calls", "options", "classifier"} {
			t.Run(mode+"/"+culprit, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { panicking(t, c, mode, culprit) })
			})
		}
	}
}

// panicking makes a call in which the culprit panics, if it comes to that, and sees what is left.
func panicking(t *testing.T, c policy.Config, mode, culprit string) {
	t.Helper()
	f, b := &fuse{limit: 10}, &till{purse: &purse{Budget: budget.Unlimited, grants: 99}}
	blamed := func(name string) {
		if name == culprit {
			panic(name)
		}
	}
	r := mustNew(t, mustSet(t, c), withFuse(f), interceptor.WithBudget("", b),
		interceptor.WithObserver(interceptor.Observer{
			Attempt:  func(context.Context, interceptor.AttemptEvent) { blamed("attempts") },
			Decision: func(context.Context, interceptor.DecisionEvent) { blamed("decisions") },
			Call:     func(context.Context, interceptor.CallEvent) { blamed("calls") },
			Warning:  func(policy.Diagnostic) {},
		}),
		interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
			blamed("classifier")
			return interceptor.VerdictByCode
		}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var attempts atomic.Int64
	seen := caught(func() {
		_ = r.Unary()(ctx, get, nil, new(wrapperspb.StringValue), nil,
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				n := attempts.Add(1)
				blamed(fmt.Sprint("attempt ", n))
				if mode == "beside" && n == 1 {
					<-ctx.Done()
					return status.FromContextError(ctx.Err()).Err()
				}
				return status.Error(codes.Unavailable, "")
			}, grpc.OnFinish(func(error) { blamed("options") }))
	})
	time.Sleep(time.Hour) // virtual: nothing is left that could still happen
	never := mode == "one attempt" && (culprit == "attempt 2" || culprit == "classifier")
	if never != (seen == nil) {
		t.Errorf("the caller sees the panic %v", seen)
	}
	if left := held(r, f, b); left != "" {
		t.Errorf("after %d attempts, held for ever: %s; %v, %v", attempts.Load(), left, f, b)
	}
}

// caught runs f and returns what it panics with.
func caught(f func()) (seen any) {
	defer func() { seen = recover() }()
	f()
	return nil
}

func TestUnaryPanic_WithTimeout(t *testing.T) {
	charged(t, func(t *testing.T, s scene, p *purse) {
		var attempt context.Context
		explode := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			attempt = ctx
			panic("boom")
		}
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(explode))...)
		func() {
			defer func() { _ = recover() }()
			_, _ = s.call(t.Context(), get)
		}()
		time.Sleep(time.Minute) // virtual: long after the attempt's timeout
		if attempt.Err() == nil || len(p.asked) != 0 || p.started != 1 || p.bad != 1 {
			t.Errorf("the attempt's context: %v; %d calls, %v; want it done, and no permit asked for", attempt.Err(), p.started, p)
		}
	})
}

func TestUnaryPanic_BesideTheCaller(t *testing.T) {
	budget := &purse{grants: 10}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		second := false
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if _, later := metadata.FromOutgoingContext(ctx); later {
					second = true
					panic("in an interceptor further in")
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			}))...)
		defer func() {
			if got := recover(); got != "in an interceptor further in" || !second {
				t.Errorf("recovered %v", got)
			}
			if budget.bad != 1 || budget.started != 1 {
				t.Errorf("the budget: %v", budget)
			}
		}()
		_ = conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue))
	}, interceptor.WithBudget("", budget))
}
