// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
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
	retry.Backoff = backoff.Config{Initial: 1, Max: 1, Multiplier: 1, Jitter: "NONE"}
	retry.Budget = "one"
	c := configOf(retry, config)
	return manyTargets{t, mustNew(t, mustSet(t, c), quiet), new(1000)}
}

func configOf(retry spec.Retry, one budget.Config) spec.Config {
	c := hurried(config(retry))
	c.Budgets = []spec.Budget{{Name: "one", Config: one}}
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
			return endAsGRPC(opts, invoke())
		})
}

// endAsGRPC reports the end of an attempt that has left the client, as gRPC does.
func endAsGRPC(opts []grpc.CallOption, err error) error {
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.TrailerCallOption:
			*o.TrailerAddr = metadata.MD{}
		case grpc.OnFinishCallOption:
			o.OnFinish(err)
		}
	}
	return err
}

// pass lets many other targets come and go. After 6 s, a bucket has forgotten their successes.
func (s manyTargets) pass(n int, pause time.Duration) {
	s.t.Helper()
	for range n {
		s.call(*s.passed, succeed)
		*s.passed++
		time.Sleep(pause)
	}
}

func succeed() error { return nil }
func refuse() error  { return status.Error(codes.Unavailable, "no") }

// of returns the balance of a target, or nil.
func (s manyTargets) of(target int) *interceptor.BudgetState {
	return s.named(fmt.Sprintf("passthrough:///target-%d", target))
}

func (s manyTargets) named(name string) *interceptor.BudgetState {
	list := inUse(s.retrier)
	if i := slices.IndexFunc(list, func(b interceptor.BudgetState) bool { return b.Target == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// Of many targets, the balances of those last used are kept, and each target has its own.
func TestBudgetsOfManyTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		s.retrier.SetMostBalances(100)
		for i := range 300 {
			s.call(i, succeed)
			if s.of(0) == nil {
				t.Fatalf("the balance that was used last has left for target %d", i)
			}
			s.call(0, succeed)
		}
		if n := len(inUse(s.retrier)); n > 100 || n < 88 || s.of(299) == nil || s.of(213) == nil || s.of(200) != nil {
			t.Errorf("%d balances; want those of the last targets, and the one that is used again and again", n)
		}
		for i := range 200 { // nothing is full
			attempts := 0
			s.call(1000+i, func() error { attempts++; return refuse() })
			if attempts != 4 {
				t.Fatalf("%d attempts for target %d; want those of a full bucket of its own", attempts, i)
			}
		}
	})
}

// notFoundError says that the server answers, which fills no bucket: not everything fails.
func notFoundError() error { return status.Error(codes.NotFound, "no such order") }

// A call whose balance leaves while its attempt runs is paid for by it. Later calls have a full one, and the counts are those of both.
func TestBudgetsHeldByACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		s.retrier.SetMostBalances(3)
		goOn, attempts := make(chan struct{}), new(atomic.Int64)
		go s.call(1, func() error {
			if attempts.Add(1) == 2 {
				<-goOn
			}
			return refuse()
		})
		time.Sleep(time.Second)
		s.pass(20, 0)
		if s.of(1) != nil || attempts.Load() != 2 {
			t.Fatalf("the balance is there, or %d attempts; want it to leave during the second", attempts.Load())
		}
		close(goOn)
		time.Sleep(time.Second)
		s.call(1, notFoundError)
		s.call(1, refuse)
		if b := s.of(1); b == nil || b.Granted != 6 || b.Refused != 0 || attempts.Load() != 4 {
			t.Errorf("%+v after %d attempts; want 3 granted to each call", b, attempts.Load())
		}
	})
}

// A target for which the program makes no budget gets no retries, which are counted. A panic is the caller's.
func TestWithBudget_None(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		panics := true
		s.retrier = mustNew(t, s.retrier.State().Policies, quiet, interceptor.WithBudget("one", func(string) budget.Budget {
			if panics {
				panic("no budget")
			}
			return nil
		}))
		func() {
			defer func() {
				if p := recover(); p != "no budget" {
					t.Errorf("panic %v", p)
				}
			}()
			s.call(1, succeed)
		}()
		panics = false
		s.call(1, notFoundError)
		s.call(1, refuse)
		if b := s.of(1); b == nil || b.Granted != 0 || b.Refused != 1 {
			t.Errorf("%+v; want a retry refused", b)
		}
	})
}

// Each target has the budget that the program makes for it.
func TestWithBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		made := map[string]*purse{}
		s.retrier = mustNew(t, s.retrier.State().Policies, quiet, interceptor.WithBudget("one", func(target string) budget.Budget {
			made[target] = &purse{grants: 1}
			return made[target]
		}))
		for range 2 {
			s.call(1, refuse)
			s.call(2, refuse)
		}
		if one, two := made["passthrough:///target-1"], made["passthrough:///target-2"]; len(made) != 2 || len(one.asked) != 3 || len(two.asked) != 3 {
			t.Errorf("made %v; want one for each target, asked three times", made)
		}
		for _, o := range []interceptor.Option{interceptor.WithBudget("one", nil), interceptor.WithBudget("NONE", func(string) budget.Budget { return nil })} {
			if _, err := interceptor.New(s.retrier.State().Policies, o); err == nil {
				t.Error("taken, without a function or for NONE")
			}
		}
	})
}
