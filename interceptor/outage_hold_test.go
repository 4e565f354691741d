// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// allFail has the server fail and makes five calls, after which retries wait.
func (s scene) allFail(t *testing.T) {
	t.Helper()
	s.On(get, down())
	for range budget.AllFail {
		_, err := s.call(t.Context(), get, interceptor.MaxAttempts(1))
		if err == nil {
			t.Fatal("a call succeeds")
		}
	}
}

// holdsNothing checks that no call waits. The permits of calls that have ended are checked by TestModel, and goroutines by TestMain.
func (s scene) holdsNothing(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if got := s.retrier.State().Waiting; got.All() != 0 {
		t.Errorf("%+v wait still", got)
	}
}

// What happens during the wait: nothing is held afterwards.
func TestOutageWait_Meanwhile(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(t *testing.T, s scene) // after a second
		deadline  time.Duration
		reason    policy.Reason // of the call's end; "": success
		after     time.Duration // the call's time, at least
	}{
		"a reload, and an answer": {func(t *testing.T, s scene) {
			c := everywhere()
			c.MaxWaiting = 7
			s.reload(t, c)
			s.On(get, testserver.OK())
		}, time.Minute, "", time.Second},
		"a switch to OBSERVE": {func(t *testing.T, s scene) {
			testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeObserve}))
		}, time.Minute, policy.ReasonModeOff, time.Second},
		"the deadline": {func(*testing.T, scene) {}, 1500 * ms, policy.ReasonFailingEverywhere, 750 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			b := &patientBudget{then: budget.Yes}
			play(t, everywhere(), func(t *testing.T, s scene) {
				b.until = time.Now().Add(2 * time.Second)
				s.On(get, down())
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				time.AfterFunc(time.Second, func() { row.meanwhile(t, s) })
				began := time.Now()
				_, err := s.call(ctx, get)
				took := time.Since(began)
				if reasonOf(err) != row.reason || took < row.after || took > row.deadline || took > 3*time.Second {
					t.Errorf("%v (%s) after %v; want %q after %v or more", err, reasonOf(err), took, row.reason, row.after)
				}
				s.holdsNothing(t)
			}, interceptor.WithBudget("", forAll(b)))
		})
	}
}

// fragileBudget says Later, and panics when it is asked the third time.
type fragileBudget struct {
	mu    sync.Mutex
	asked int
}

func (*fragileBudget) Observe(time.Time, budget.Event) {}

func (b *fragileBudget) Allow(time.Time, budget.Cause) (budget.Answer, func(time.Time, budget.End)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if b.asked == 3 {
		panic("the budget is broken")
	}
	return budget.Later, nil
}

// A budget's panic during the wait reaches the caller, and the call holds nothing.
func TestOutageWait_Panic(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.On(get, down())
		func() {
			defer func() {
				if v := recover(); v != "the budget is broken" {
					t.Errorf("recovered %v", v)
				}
			}()
			_, err := s.call(t.Context(), get)
			t.Errorf("the call ends with %v", err)
		}()
		s.holdsNothing(t)
	}, interceptor.WithBudget("", forAll(new(fragileBudget))))
}

// With scope PROCESS, an answer of one target lets calls to another one return.
func TestOutageWait_ScopeProcess(t *testing.T) {
	retry := plain()
	retry.Budget = "all"
	c := config(retry)
	c.Budgets = []spec.Budget{{Name: "all", Scope: "PROCESS", Config: budget.Default()}}
	play(t, c, func(t *testing.T, s scene) {
		other := testserver.Start(t)
		other.On("*", testserver.OK())
		healthy := other.Dial(t, s.retrier.DialOptions()...)
		s.allFail(t)
		began := time.Now()
		var call sync.WaitGroup
		call.Go(func() {
			if _, err := s.call(t.Context(), get); err != nil || time.Since(began) != 100*ms {
				t.Errorf("%v after %v; want a success after a backoff", err, time.Since(began))
			}
		})
		synctest.Wait()
		if got := s.retrier.State().Waiting.Answer; got != 1 {
			t.Errorf("%d calls wait for an answer; want one", got)
		}
		s.On(get, testserver.OK())
		time.Sleep(50 * ms) // before the call would ask the server itself
		testkit.NoError(t, healthy.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue)))
		call.Wait()
		s.holdsNothing(t)
	})
}

// A failed attempt of a hedging policy waits as well.
func TestOutageWait_Hedging(t *testing.T) {
	hedge := spec.Hedge{MaxAttempts: 3, HedgingDelay: 10 * time.Second, NonFatalStatusCodes: []codes.Code{codes.Unavailable}}
	c := spec.Config{Methods: []spec.MethodConfig{{Names: []string{get}, Policy: spec.Policy{Hedge: &hedge}}}}
	play(t, c, func(t *testing.T, s scene) {
		s.allFail(t)
		time.AfterFunc(150*ms, func() { s.On(get, testserver.OK()) })
		if _, err := s.call(t.Context(), get); err != nil {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
		if d := s.decisions[len(s.decisions)-1]; !d.ForAnswer {
			t.Errorf("%+v; want a decision that waits for an answer", d)
		}
		s.holdsNothing(t)
	})
}

// A server that asks for a longer delay than the wait is obeyed at once: the call ends.
func TestOutageWait_ServersDelay(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.allFail(t)
		s.On(get, down().Pushback("4000"))
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonFailingEverywhere || time.Since(began) != 0 {
			t.Errorf("%v (%s) after %v; want failing_everywhere at once", err, reasonOf(err), time.Since(began))
		}
		s.On(get, down().Pushback("2000"), testserver.OK())
		_, err = s.call(t.Context(), get)
		if err != nil || time.Since(began) < 2*time.Second {
			t.Errorf("%v (%s) after %v; want a success after 2 s", err, reasonOf(err), time.Since(began))
		}
	})
}

// A call inside another one waits three quarters of its time, so that the handler can still answer.
func TestOutageWait_Inbound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		last := testserver.Start(t)
		last.On("*", down())
		retrier := mustNew(t, mustSet(t, everywhere()), quiet, interceptor.WithBudget("", forAll(laterBudget{})))
		below := last.Dial(t, retrier.DialOptions()...)
		took := make(chan time.Duration, 1)
		middle := testserver.Start(t, testserver.ServerOptions(retrier.ServerOptions()...),
			testserver.Register(unaryOrders(func(ctx context.Context) error {
				began := time.Now()
				err := below.Invoke(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue))
				took <- time.Since(began)
				return err
			})))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := middle.Dial(t).Invoke(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue))
		if got := <-took; got < 1400*ms || got > 1500*ms || err == nil {
			t.Errorf("%v: the handler's call waits for %v; want three quarters of 2 s", err, got)
		}
	})
}

// A lone call returns soon after its server: the median of many, and the longest wait of a call whose server stays away.
func TestOutageWait_Lone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ away, median, longest time.Duration }{
		"0.1 s":    {100 * ms, 350 * ms, 3100 * ms},
		"a second": {time.Second, 1600 * ms, 3100 * ms},
		"2.9 s":    {2900 * ms, 3100 * ms, 3100 * ms},
		"a minute": {time.Minute, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var took []time.Duration
			for range 21 {
				took = append(took, loneCall(t, row.away))
			}
			slices.Sort(took)
			if took[10] > row.median || took[20] > row.longest {
				t.Errorf("away for %v: the median call takes %v, the longest %v; want at most %v and %v", row.away, took[10], took[20], row.median, row.longest)
			}
		})
	}
}

// loneCall returns how long a call takes by the default policy that begins when its server goes away.
func loneCall(t *testing.T, away time.Duration) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		retry := plain()
		retry.Budget, retry.Backoff = "", backoff.Config{Initial: 100 * ms, Max: time.Second, Multiplier: 2, Jitter: backoff.JitterFull}
		r := mustNew(t, mustSet(t, config(retry)), quiet)
		server := testserver.Start(t)
		server.On("*", testserver.OK())
		conn := server.Dial(t, r.DialOptions()...)
		testkit.NoError(t, conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue)))
		server.Down()
		time.AfterFunc(away, server.Up)
		synctest.Wait()
		began := time.Now()
		_ = conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue))
		took = time.Since(began)
	})
	return took
}

// Ten watches of one process outlive 24 restarts of their server, an hour apart: resuming a stream that ran for long needs no permission.
func TestOutageWait_Watches(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		const watches, restarts = 10, 24
		s.On(get, faults.Play(faults.Receive(1), say("1")).Then(testserver.Hang()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for n := range watches {
			all.Go(func() {
				stream := s.open(t, ctx, serverStream, interceptor.Resume(after))
				send(t, stream, "all")
				_ = stream.CloseSend()
				for got := 0; ; got++ {
					if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
						if ctx.Err() == nil || got != restarts+1 {
							t.Errorf("watch %d: %v (%s) after %d messages", n, err, reasonOf(err), got)
						}
						return
					}
				}
			})
		}
		for range restarts {
			time.Sleep(time.Hour)
			s.Down()
			time.Sleep(time.Second)
			s.Up()
		}
		time.Sleep(time.Hour)
		cancel()
		all.Wait()
		s.holdsNothing(t)
	})
}

// With maxConnectionWait: 0s, a call waits for no answer either.
func TestOutageWait_None(t *testing.T) {
	c := everywhere()
	for i := range c.Methods {
		c.Methods[i].MaxConnectionWait = new(0 * ms)
	}
	play(t, c, func(t *testing.T, s scene) {
		s.allFail(t)
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonFailingEverywhere || time.Since(began) != 0 {
			t.Errorf("%v (%s) after %v; want failing_everywhere at once", err, reasonOf(err), time.Since(began))
		}
	})
}
