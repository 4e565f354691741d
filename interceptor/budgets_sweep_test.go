// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// manyTargets makes calls to many targets, each over its own connection, which never connects.
type manyTargets struct {
	t       *testing.T
	retrier *interceptor.Retrier
	passed  *int // the next target of those that come and go
}

func newManyTargets(t *testing.T, config budget.Config) manyTargets {
	t.Helper()
	retry := plain()
	retry.Backoff = policy.Backoff{Initial: 1, Max: 1, Multiplier: 1, Jitter: policy.JitterNone}
	retry.Budget, retry.WaitForReadyOnRetry = "one", new(false)
	c := configOf(retry, config)
	return manyTargets{t, mustNew(t, mustSet(t, c), quiet), new(1000)}
}

func configOf(retry policy.RetrySpec, one budget.Config) policy.Config {
	c := config(retry)
	c.Budgets = []policy.BudgetSpec{{Name: "one", Config: one}}
	return c
}

// call makes a call to a target.
func (s manyTargets) call(target int, invoke func() error) {
	s.t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///target-%d", target), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	_ = s.retrier.Unary()(s.t.Context(), get, nil, nil, conn,
		func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			err := invoke()
			for _, o := range opts { // as gRPC does, of an attempt that has left the client
				switch o := o.(type) {
				case grpc.PeerCallOption:
					*o.PeerAddr = peer.Peer{}
				case grpc.OnFinishCallOption:
					o.OnFinish(err)
				}
			}
			return err
		})
}

// pass lets many other targets come and go, so that the table is swept.
func (s manyTargets) pass(n int) {
	s.t.Helper()
	for range 4 {
		runtime.GC() // which knows whether a call holds a balance
		for range n {
			s.call(*s.passed, succeed)
			*s.passed++
			time.Sleep(ms)
		}
	}
}

func succeed() error { return nil }
func refuse() error  { return status.Error(codes.Unavailable, "no") }

// of returns the balance of a target, or nil.
func (s manyTargets) of(target int) *interceptor.BudgetState {
	name := fmt.Sprintf("passthrough:///target-%d", target)
	list := inUse(s.retrier)
	if i := slices.IndexFunc(list, func(b interceptor.BudgetState) bool { return b.Target == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// TestBudgetsOfManyTargets has 10,000 targets, a hundred a second: those of the last 10 s have something to remember.
func TestBudgetsOfManyTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.DefaultRatio())
		most := 0
		for i := range enough(10_000) {
			s.call(i, succeed)
			if i%1000 == 0 {
				runtime.GC()
				most = max(most, len(inUse(s.retrier)))
			}
			time.Sleep(10 * ms)
		}
		t.Logf("%d balances at most", most)
		if most < 1000 || most > 8000 {
			t.Errorf("%d balances were kept; want the 1,000 that matter, and a few times that", most)
		}
	})
}

// A balance's state ends only with time.
func TestBudgetsKeepWhatCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config budget.Config
		heal   func(manyTargets)
	}{
		"ratio":    {budget.DefaultRatio(), func(manyTargets) { time.Sleep(11 * time.Second) }},
		"throttle": {budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 1}, func(s manyTargets) { healed(s, 4) }},
		"refund":   {budget.RefundConfig{Capacity: 500, RetryCost: 5, TimeoutCost: 10, Success: 1}, func(s manyTargets) { healed(s, 15) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newManyTargets(t, row.config)
				s.call(0, succeed) // the policy itself keeps the first one
				s.call(1, refuse)
				s.pass(200)
				before := s.of(1)
				if before == nil || before.Balance >= before.Capacity {
					t.Fatalf("%+v; want a balance that has paid for retries", before)
				}
				row.heal(s)
				s.pass(1000)
				if b := s.of(1); b != nil {
					t.Errorf("%+v; want it dropped, since a fresh one says the same", b)
				}
			})
		})
	}
}

// healed makes successful calls, which fill a bucket.
func healed(s manyTargets, calls int) {
	s.t.Helper()
	for range calls {
		s.call(1, succeed)
	}
}

// A call holds its balance, however long it runs, and another call to the target finds the same one.
func TestBudgetsHeldByACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.DefaultRatio())
		s.call(0, succeed)
		goOn, attempts := make(chan struct{}), new(atomic.Int64)
		go s.call(1, func() error {
			if attempts.Add(1) == 1 {
				<-goOn
			}
			return refuse()
		})
		time.Sleep(time.Minute)
		s.pass(200)
		if s.of(1) == nil {
			t.Fatal("the balance of a call that runs is dropped")
		}
		close(goOn)
		time.Sleep(time.Second)
		if b := s.of(1); b == nil || b.Granted != 3 || attempts.Load() != 4 {
			t.Errorf("%+v after %d attempts; want those after the first charged to it", b, attempts.Load())
		}
		time.Sleep(time.Minute)
		s.pass(1000)
		if b := s.of(1); b != nil {
			t.Errorf("%+v; want it dropped, since nobody holds it any more", b)
		}
	})
}
