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

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
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
	retry.Backoff = spec.Backoff{Initial: 1, Max: 1, Multiplier: 1, Jitter: "NONE"}
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

// Of many targets, the balances of those last used are kept, and those that have something to remember. Beyond that, targets
// share one, which is not evicted.
func TestBudgetsOfManyTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		s.retrier.SetMostBalances(100)
		for i := range 300 {
			s.call(i, succeed)
			time.Sleep(200 * ms)
		}
		if n := len(inUse(s.retrier)); n > 100 || n < 50 || s.of(299) == nil || s.of(0) != nil {
			t.Errorf("%d balances; want the last ones, at most 100", n)
		}
		for i := range 200 { // at once: nothing is full
			s.call(1000+i, refuse)
		}
		shared := s.named(otherTarget)
		if n := len(inUse(s.retrier)); n != 101 || shared == nil || shared.Refused == 0 {
			t.Errorf("%d balances, %+v; want 100, and one that is shared and empty", n, shared)
		}
		time.Sleep(10 * time.Minute)
		s.call(2000, succeed)
		if s.of(2000) == nil || s.named(otherTarget) == nil {
			t.Error("want a balance for a new target, and the shared one")
		}
		if s.of(1199) != nil {
			t.Fatal("the last target of many has a balance of its own; want the shared one")
		}
		s.call(1199, succeed)
		if s.of(1199) == nil {
			t.Error("a target that had to share a balance still shares it when there is room")
		}
	})
}

const otherTarget = "other"

// A balance's state ends only with time.
func TestBudgetsKeepWhatCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config budget.Config
		heal   func(manyTargets)
	}{
		"bucket":   {budget.Default(), func(manyTargets) { time.Sleep(10 * time.Minute) }},
		"throttle": {budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 1}, func(s manyTargets) { healed(s, 9) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newManyTargets(t, row.config)
				s.retrier.SetMostBalances(3)
				s.call(1, refuse)
				s.call(1, refuse) // is refused a retry
				s.pass(20, ms)
				before := s.of(1)
				if before == nil || before.Balance >= before.Capacity {
					t.Fatalf("%+v; want a balance that has paid for retries", before)
				}
				row.heal(s)
				s.pass(20, 6*time.Second)
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

// The balance of an attempt that runs is not evicted. A call whose balance was evicted has the one that replaces it.
func TestBudgetsHeldByACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		four := budget.Default()
		four.Size = 4
		s := newManyTargets(t, four)
		s.retrier.SetMostBalances(3)
		play := func(target int, hangs int64) (goOn chan struct{}, attempts *atomic.Int64) {
			goOn, attempts = make(chan struct{}), new(atomic.Int64)
			go s.call(target, func() error {
				if attempts.Add(1) == hangs {
					<-goOn
				}
				return refuse()
			})
			s.pass(1, time.Minute) // in the same second, so that both are considered together
			s.pass(20, 6*time.Second)
			return goOn, attempts
		}
		goOn, attempts := play(1, 2)
		if s.of(1) == nil {
			t.Fatal("the balance of a permit that is out is dropped")
		}
		close(goOn)
		time.Sleep(time.Second)
		if b := s.of(1); b == nil || b.Granted != 3 || attempts.Load() != 4 {
			t.Errorf("%+v after %d attempts; want those after the first charged to it", b, attempts.Load())
		}
		goOn, attempts = play(2, 1)
		if s.of(2) != nil {
			t.Error("a balance that is full is kept")
		}
		s.call(2, refuse)
		close(goOn)
		time.Sleep(time.Second)
		if b := s.of(2); b == nil || b.Granted != 4 || b.Refused != 1 || attempts.Load() != 2 {
			t.Errorf("%+v after %d attempts; want 3 retries of the later call, and one of the first, charged to the balance that is there now", b, attempts.Load())
		}
	})
}

// asks is a full budget that runs a function when it is asked for its state.
type asks struct {
	purse

	state func()
}

func (a *asks) State(time.Time) budget.State {
	a.state()
	return budget.State{Balance: 1, Capacity: 1}
}

// While a balance is considered for eviction, it pays, and then it stays.
func TestBudgetsInUseAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn, attempts, asked, made := make(chan struct{}), 0, 0, new(atomic.Int64)
		first := &asks{purse: purse{grants: 9}}
		first.state = func() {
			if asked++; asked == 1 { // it is about to be evicted
				close(goOn)
				time.Sleep(ms)
			}
		}
		s := newManyTargets(t, budget.Default())
		s.retrier = mustNew(t, s.retrier.State().Policies, quiet, interceptor.WithBudget("one", func(target string) budget.Budget {
			if made.Add(1); target == "passthrough:///target-1" {
				return first
			}
			return &asks{state: func() {}}
		}))
		s.retrier.SetMostBalances(2)
		go s.call(1, func() error {
			if attempts++; attempts == 1 {
				<-goOn
			}
			return refuse()
		})
		time.Sleep(time.Minute)
		s.pass(2, time.Second)
		if s.call(1, refuse); attempts != 4 || made.Load() != 3 {
			t.Errorf("%d attempts with %d budgets; want 4 with those of 3 targets", attempts, made.Load())
		}
	})
}

// A budget of the program is read without a lock, also when there are too many and one must make room.
func TestBudgetsAreReadWithoutALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		read := 0
		s.retrier = mustNew(t, s.retrier.State().Policies, quiet, interceptor.WithBudget("one", func(string) budget.Budget {
			return &asks{state: func() {
				if read++; read < 10 { // it reads all budgets
					s.retrier.State()
				}
			}}
		}))
		s.retrier.SetMostBalances(2)
		for target := range 4 {
			s.call(target, refuse)
		}
		if read == 0 {
			t.Error("no budget was read")
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

// throttled replaces the budget "one" by one of another kind.
func (s manyTargets) throttled() {
	s.t.Helper()
	retry := plain()
	retry.Backoff = spec.Backoff{Initial: 1, Max: 1, Multiplier: 1, Jitter: "NONE"}
	retry.Budget = "one"
	if err := s.retrier.Reload(mustSet(s.t, configOf(retry, budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}))); err != nil {
		s.t.Fatal(err)
	}
}

// A reload that changes a budget's kind refills nothing, and takes nothing from targets that had no balance.
func TestReload_DrainsWhatItReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		for _, target := range []int{1, 2} {
			s.call(target, refuse)
		}
		s.throttled()
		for target, want := range map[int]bool{1: true, 3: false} {
			s.call(target, refuse)
			if b := s.of(target); b == nil || (b.Granted == 0) != want {
				t.Errorf("target %d: %+v; want it to begin with nothing: %v", target, b, want)
			}
		}
		time.Sleep(time.Hour)
		for _, target := range []int{2, 4} {
			s.call(target, refuse)
			if b := s.of(target); b == nil || b.Granted == 0 {
				t.Errorf("target %d, an hour later: %+v; want retries", target, b)
			}
		}
	})
}
