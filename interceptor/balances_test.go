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
		if n := len(inUse(s.retrier)); n != 100 || s.of(299) == nil || s.of(201) == nil || s.of(200) != nil {
			t.Errorf("%d balances; want those of the last 99 targets, and the one that is used again and again", n)
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

// A balance that leaves while its target fails comes back no fuller, however many others have come and gone. One that is full is forgotten.
func TestBudgetsComeBackNoFuller(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config budget.Config
		extra  int // attempts that a new balance grants
		heal   func(manyTargets)
	}{
		"bucket":   {budget.Default(), 4, func(manyTargets) { time.Sleep(10 * time.Minute) }},
		"throttle": {budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 1}, 3, func(s manyTargets) { healed(s, 10) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newManyTargets(t, row.config)
				s.retrier.SetMostBalances(3)
				fails := func() (extra int) {
					for range 3 {
						s.call(1, func() error { extra++; return refuse() })
						s.call(1, notFoundError)
					}
					return extra - 3
				}
				if got := fails(); got != row.extra {
					t.Fatalf("%d extra attempts of a new balance; want %d", got, row.extra)
				}
				for range 3 {
					s.pass(20, 0)
					if s.of(1) != nil {
						t.Fatal("the balance is still there")
					}
					if got := fails(); got != 0 {
						t.Errorf("%d extra attempts after others have come and gone; want none", got)
					}
				}
				row.heal(s)
				s.pass(20, 0)
				if got := fails(); got != row.extra {
					t.Errorf("%d extra attempts when the target was well; want %d", got, row.extra)
				}
			})
		})
	}
}

// notFoundError says that the server answers, which fills no bucket: not everything fails.
func notFoundError() error { return status.Error(codes.NotFound, "no such order") }

// healed makes successful calls, which fill a bucket.
func healed(s manyTargets, calls int) {
	s.t.Helper()
	for range calls {
		s.call(1, succeed)
	}
}

// A call whose balance leaves while its attempt runs is paid for by it, also when it has come back.
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
		if b := s.of(1); b == nil || b.Granted != 4 || b.Refused != 1 || attempts.Load() != 4 {
			t.Errorf("%+v after %d attempts; want 4 granted to both calls together, and one refused", b, attempts.Load())
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

// A budget of the program comes back as it was, and is not read when it leaves.
func TestWithBudget_ComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		made, read := 0, 0
		s.retrier = mustNew(t, s.retrier.State().Policies, quiet, interceptor.WithBudget("one", func(target string) budget.Budget {
			if target == "passthrough:///target-1" {
				made++
			}
			return &asks{purse: purse{grants: 3}, state: func() { read++ }}
		}))
		s.retrier.SetMostBalances(5)
		attempts := 0
		for range 3 {
			s.call(1, func() error { attempts++; return refuse() })
			s.pass(5, 0)
		}
		if attempts != 3+3 || made != 1 || read != 0 {
			t.Errorf("%d attempts with %d budgets, read %d times; want 3 extra ones of one budget, which is not read", attempts, made, read)
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

// throttled replaces the budget "one" by one of another kind.
func (s manyTargets) throttled() {
	s.t.Helper()
	retry := plain()
	retry.Backoff = backoff.Config{Initial: 1, Max: 1, Multiplier: 1, Jitter: "NONE"}
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
