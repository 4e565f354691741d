// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
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
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// admitting is a policy with admission and other settings.
func admitting(changes ...func(*policy.Spec)) policy.Config {
	retry := plain()
	spec := policy.Spec{Retry: &retry, Admission: policy.AdmissionRefuse}
	for _, change := range changes {
		change(&spec)
	}
	return policy.Config{Methods: []policy.MethodConfig{
		{Names: []string{"/acme.orders.v1.OrderService/GetOrder"}, Spec: spec},
	}}
}

// waitingCrowd is a service that has become slow, with its waiting calls.
type waitingCrowd struct {
	scene

	wg     sync.WaitGroup
	cancel context.CancelFunc
}

// gather makes the service answer calls for 4 s, the last ones in 700 ms, and refuse one for overload. Then it starts n
// more calls that the service does not answer. A call with a second left has room for one of them.
func (s scene) gather(t *testing.T, n int, levels ...policy.Criticality) *waitingCrowd {
	t.Helper()
	for i := range 6 {
		took := 700 * ms
		if i < 2 {
			took = 20 * ms
		}
		s.On(get, text("slow").Delay(took))
		must.Get(s.call(t.Context(), get))(t)
		time.Sleep(750*ms - took)
	}
	s.On(get, testserver.Fail(codes.ResourceExhausted, "full"))
	if _, err := s.call(t.Context(), get); status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	s.On(get, testserver.Hang())
	ctx, cancel := context.WithCancel(levelled(t.Context(), levels...))
	c := &waitingCrowd{scene: s, cancel: cancel}
	for range n {
		c.wg.Go(func() { _, _ = s.call(ctx, get) })
	}
	synctest.Wait()
	return c
}

// leave ends the calls that run.
func (c *waitingCrowd) leave() {
	c.cancel()
	c.wg.Wait()
}

func running(t *testing.T, r *interceptor.Retrier) int {
	t.Helper()
	list := inside.Admission(r)
	if len(list) != 1 || list[0].Method != get || list[0].Target == "" {
		t.Fatalf("%+v; want one reading, of %s", list, get)
	}
	return list[0].Running
}

// refused makes a call with the given time.
func (s scene) refused(t *testing.T, left time.Duration, opts ...grpc.CallOption) (refused bool, err error) {
	t.Helper()
	return s.refusedIn(t.Context(), t, left, opts...)
}

func (s scene) refusedIn(ctx context.Context, t *testing.T, left time.Duration, opts ...grpc.CallOption) (refused bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	before, began := s.Count(get), time.Now()
	_, err = s.call(ctx, get, opts...)
	if reasonOf(err) != policy.ReasonOverloaded {
		return false, err
	}
	if n, took := s.Count(get)-before, time.Since(began); n != 0 || took != 0 {
		t.Errorf("%d requests in %v of a call that is refused; want none, at once", n, took)
	}
	return true, err
}

// levelled returns a context with the criticality, if there is one.
func levelled(ctx context.Context, levels ...policy.Criticality) context.Context {
	for _, c := range levels {
		ctx = interceptor.ContextWithCriticality(ctx, c)
	}
	return ctx
}

// Without an observer of attempts, a success needs no more than the start of the engine.
func TestAdmission_Unobserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), retrier: mustNew(t, mustSet(t, admitting()), quiet)}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		c := s.gather(t, 3)
		defer c.leave()
		if refused, err := s.refused(t, time.Second); !refused {
			t.Errorf("%v; want that the call is refused", err)
		}
		if refused, err := s.refused(t, 5*time.Second); refused || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%v; a call with more time is made", err)
		}
	})
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config  policy.Config
		options []interceptor.Option
	}{
		"retries":           {admitting(), nil},
		"without retries":   {admitting(func(s *policy.Spec) { s.Retry = nil }), nil},
		"attempts timeouts": {admitting(func(s *policy.Spec) { s.Retry.PerAttemptTimeout = 5 * time.Second }), nil},
		"hedging": {admitting(func(s *policy.Spec) {
			s.Retry, s.Hedge = nil, &policy.HedgeSpec{MaxAttempts: 2, Delay: 5 * time.Second}
		}), nil},
		"a breaker": {admitting(), []interceptor.Option{withFuse(&fuse{limit: 100})}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				c := s.gather(t, 3)
				defer c.leave()
				s.calls = nil
				finished := 0
				refused, err := s.refused(t, time.Second, grpc.OnFinish(func(error) { finished++ }))
				e, _ := errors.AsType[*interceptor.Error](err)
				if !refused || status.Code(err) != codes.ResourceExhausted || e == nil || e.Attempts != 0 || finished != 1 {
					t.Errorf("%+v (finished %d times); want RESOURCE_EXHAUSTED, overloaded, 0 attempts, finished once", err, finished)
				}
				if len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonOverloaded || s.calls[0].Attempt != 0 || s.calls[0].Code != codes.ResourceExhausted {
					t.Errorf("observers are told of %+v; want one call, overloaded, 0 attempts", s.calls)
				}
				if got := inside.Admission(s.retrier)[0]; got.Running != 3 || got.Refused != 1 {
					t.Errorf("%+v; want 3 attempts that run, and 1 call refused", got)
				}
				if refused, _ := s.refused(t, 2*time.Second); refused {
					t.Error("a call is refused that has time enough")
				}
			}, row.options...)
		})
	}
}

func TestAdmission_NoDeadline(t *testing.T) {
	play(t, admitting(), func(t *testing.T, s scene) {
		c := s.gather(t, 30)
		defer c.leave()
		s.On(get, text("in the end"))
		if got, err := s.call(t.Context(), get); got != "in the end" || err != nil {
			t.Errorf("%q, %v; want a call without a deadline to be made", got, err)
		}
	})
}

func TestAdmission_PolicyTimeout(t *testing.T) {
	play(t, admitting(func(s *policy.Spec) { s.Timeout = time.Second }), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		defer c.leave()
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonOverloaded {
			t.Errorf("%v; want the policy's timeout to count as the call's", err)
		}
	})
}

func TestAdmission_ExtraAttempts(t *testing.T) {
	play(t, admitting(), func(t *testing.T, s scene) {
		c := s.gather(t, 0)
		defer c.leave()
		s.On(get, down())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.call(ctx, get) // nothing runs, so it is made
		if e, _ := errors.AsType[*interceptor.Error](err); e == nil || e.Reason != policy.ReasonOverloaded || e.Attempts != 1 || status.Code(err) != codes.Unavailable {
			t.Errorf("%+v; want the server's error after 1 attempt, overloaded", err)
		}
	})
}

func TestAdmission_Criticality(t *testing.T) {
	t.Parallel()
	const sheddable, critical = policy.CriticalitySheddable, policy.CriticalityCritical
	for name, row := range map[string]struct {
		key     policy.Criticality // of the entry
		run     int                // other calls, which are sheddable
		context []policy.Criticality
		refused bool
	}{
		"default":                         {"", 3, nil, true},
		"critical, by its context":        {"", 3, []policy.Criticality{critical}, false},
		"critical, by the policy":         {critical, 3, nil, false},
		"sheddable of the context wins":   {critical, 3, []policy.Criticality{sheddable}, true},
		"the innermost context wins":      {"", 3, []policy.Criticality{sheddable, critical}, false},
		"a criticality that there is not": {critical, 3, []policy.Criticality{"UTMOST"}, false},
		"nothing runs":                    {sheddable, 0, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, admitting(func(s *policy.Spec) { s.Criticality = row.key }), func(t *testing.T, s scene) {
				c := s.gather(t, row.run, sheddable)
				defer c.leave()
				if got, err := s.refusedIn(levelled(t.Context(), row.context...), t, time.Second); got != row.refused {
					t.Errorf("refused: %v (%v); want %v", got, err, row.refused)
				}
			})
		})
	}
}

// AUTO refuses sheddable calls, and all once a server has reported its utilization or refused to work on one.
func TestAdmission_Auto(t *testing.T) {
	t.Parallel()
	auto := admitting(func(s *policy.Spec) { s.Admission = policy.AdmissionAuto })
	t.Run("sheddable", func(t *testing.T) {
		play(t, auto, func(t *testing.T, s scene) {
			c := s.gather(t, 3)
			defer c.leave()
			if refused, err := s.refused(t, time.Second); refused {
				t.Errorf("%v; want a call to be made while no server says how busy it is", err)
			}
			if refused, err := s.refusedIn(levelled(t.Context(), policy.CriticalitySheddable), t, time.Second); !refused {
				t.Errorf("%v; want a sheddable call to be refused", err)
			}
		})
	})
	t.Run("a server refuses to work", func(t *testing.T) {
		play(t, auto, func(t *testing.T, s scene) {
			s.On(get, testserver.Fail(codes.ResourceExhausted, "busy").Trailer(metadata.Pairs("stagger-not-processed", "0 "+get)))
			_, _ = s.call(t.Context(), get)
			c := s.gather(t, 3)
			defer c.leave()
			if refused, err := s.refused(t, time.Second); !refused {
				t.Errorf("%v; want the call to be refused", err)
			}
		})
	})
}

// Refused calls forbid retries upstream: a chain must not multiply an overload.
func TestAdmission_Chain(t *testing.T) {
	play(t, admitting(), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		defer c.leave()
		middle := testserver.Start(t, testserver.ServerOptions(s.retrier.ServerOptions()...))
		middle.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
			_, err := s.call(ctx, get)
			return testserver.Fail(status.Code(err), status.Convert(err).Message())
		}))
		retry := plain()
		retry.Codes = []codes.Code{codes.ResourceExhausted}
		above := mustNew(t, mustSet(t, config(retry)), quiet)
		conn := middle.Dial(t, above.DialOptions()...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := conn.Invoke(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue))
		if reasonOf(err) != policy.ReasonPushbackStop || middle.Count(get) != 1 {
			t.Errorf("%v (%s), %d requests; want pushback_stop after 1", err, reasonOf(err), middle.Count(get))
		}
	})
}

func TestAdmission_Mode(t *testing.T) {
	t.Parallel()
	for _, mode := range []policy.Mode{policy.ModeObserve, policy.ModeOff} {
		t.Run(string(mode), func(t *testing.T) {
			play(t, admitting(), func(t *testing.T, s scene) {
				c := s.gather(t, 3)
				defer c.leave()
				must.Do(t, s.retrier.Switch(interceptor.Switch{Mode: mode}))
				if refused, err := s.refused(t, time.Second); refused || running(t, s.retrier) != 3 {
					t.Errorf("%v; want the call to be made, and counted to its end", err)
				}
				if state := inside.Admission(s.retrier)[0]; state.Refused != 0 || state.WouldRefuse != 1 {
					t.Errorf("%+v; want that one call would be refused", state)
				}
				told := 0
				for _, d := range s.decisions {
					if d.Attempt == 0 && d.Reason == policy.ReasonOverloaded && d.Mode == mode && d.Code == codes.ResourceExhausted {
						told++
					}
				}
				if told != 1 == (mode == policy.ModeObserve) {
					t.Errorf("%+v; want one decision in mode OBSERVE, that the call would be refused", s.decisions)
				}
				must.Do(t, s.retrier.Switch(interceptor.Switch{Mode: policy.ModeEnforce}))
				if refused, err := s.refused(t, 1100*ms); !refused {
					t.Errorf("%v; want it to be refused again", err)
				}
			})
		})
	}
}

// A reload keeps the measurements of a service's load, and counts calls that began before it to their end.
func TestAdmission_Reload(t *testing.T) {
	play(t, admitting(), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		reload := func(c policy.Config) {
			must.Do(t, s.retrier.Reload(mustSet(t, c)))
		}
		reload(admitting(func(s *policy.Spec) { s.Retry.MaxAttempts = 3 }))
		if refused, err := s.refused(t, time.Second); !refused {
			t.Errorf("%v; want refused after a reload, too", err)
		}
		reload(config(plain()))
		if refused, _ := s.refused(t, time.Second); refused {
			t.Error("refused without admission")
		}
		if n := running(t, s.retrier); n != 3 {
			t.Errorf("%d attempts run; want the 3 from before", n)
		}
		c.leave()
		if n := running(t, s.retrier); n != 0 {
			t.Errorf("%d attempts run; want none", n)
		}
	})
}

func TestAdmission_Streams(t *testing.T) {
	t.Parallel()
	server := &grpc.StreamDesc{ServerStreams: true}
	open := func(t *testing.T, s scene) grpc.ClientStream {
		t.Helper()
		stream := must.Get(s.conn.NewStream(t.Context(), server, get))(t)
		must.Do(t, stream.SendMsg(wrapperspb.String("")))
		must.Do(t, stream.CloseSend())
		return stream
	}
	for name, row := range map[string]struct {
		change func(*policy.Spec)
		before func(grpc.ClientStream) // the first message
	}{
		"received":            {func(*policy.Spec) {}, func(grpc.ClientStream) {}},
		"committed by header": {func(*policy.Spec) {}, func(s grpc.ClientStream) { s.Context() }},
		"one attempt":         {func(s *policy.Spec) { s.Retry = nil }, func(grpc.ClientStream) {}},
		"hedging": {
			func(s *policy.Spec) {
				s.Retry, s.Hedge = nil, &policy.HedgeSpec{MaxAttempts: 2, Delay: 5 * time.Second}
			},
			func(grpc.ClientStream) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, admitting(row.change), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Pause(100*ms), say("one"), moves.Pause(time.Second), say("two"), moves.Pause(time.Second)))
				stream := open(t, s)
				row.before(stream)
				for i, want := range []int{1, 0, 0, 0} { // that run, before each message, and after the end
					synctest.Wait()
					if got := running(t, s.retrier); got != want {
						t.Errorf("%d attempts run after %d messages; want %d", got, i, want)
					}
					if err := stream.RecvMsg(new(wrapperspb.StringValue)); i == 2 && !errors.Is(err, io.EOF) || i < 2 && err != nil {
						t.Errorf("message %d: %v", i, err)
					}
				}
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		play(t, admitting(), func(t *testing.T, s scene) {
			c := s.gather(t, 3)
			defer c.leave()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.conn.NewStream(ctx, server, get); reasonOf(err) != policy.ReasonOverloaded || inside.Admission(s.retrier)[0].Refused != 1 {
				t.Errorf("%v; want it to be refused", err)
			}
		})
	})
}

// Ended attempts are not counted, whatever inner interceptors do.
func TestAdmission_Counts(t *testing.T) {
	t.Parallel()
	ends := map[string]func(cancel func()) error{
		"OK":      func(func()) error { return nil },
		"failed":  func(func()) error { return status.Error(codes.Unavailable, "down") },
		"final":   func(func()) error { return status.Error(codes.NotFound, "none") },
		"foreign": func(func()) error { return io.ErrUnexpectedEOF },
		"panic":   func(func()) error { panic("inside") },
		"Goexit":  func(func()) error { runtime.Goexit(); return nil },
		"cancelled": func(cancel func()) error {
			cancel()
			return status.FromContextError(context.Canceled).Err()
		},
	}
	policies := map[string]func(*policy.Spec){
		"retries": func(*policy.Spec) {},
		"timeout": func(s *policy.Spec) { s.Timeout = time.Minute },
		"beside":  func(s *policy.Spec) { s.Retry.PerAttemptTimeout = 10 * ms },
		"in place": func(s *policy.Spec) {
			s.Retry.PerAttemptTimeout, s.Retry.CancelOnTimeout = 10*ms, true
		},
		"hedge": func(s *policy.Spec) { s.Retry, s.Hedge = nil, &policy.HedgeSpec{MaxAttempts: 3} },
	}
	for name, change := range policies {
		for first, one := range ends {
			for second, other := range ends {
				t.Run(fmt.Sprint(name, "/", first, "/", second), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						retrier := mustNew(t, mustSet(t, admitting(change)), quiet)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						var mu sync.Mutex
						n := 0
						invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
							mu.Lock()
							n++
							ends := []func(func()) error{one, other}[min(n, 2)-1]
							mu.Unlock()
							select {
							case <-time.After(15 * ms):
								return ends(cancel)
							case <-ctx.Done():
								return status.FromContextError(ctx.Err()).Err()
							}
						}
						done := make(chan struct{})
						go func() {
							defer close(done)
							defer func() { _ = recover() }()
							_ = retrier.Unary()(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue), nil, invoke)
						}()
						<-done
						if got := inside.Admission(retrier); len(got) != 1 || got[0].Running != 0 {
							t.Errorf("%+v after %d attempts; want none to run", got, n)
						}
					})
				})
			}
		}
	}
}

// A budget that panics at the start of a call leaves nothing behind.
func TestAdmission_BudgetPanics(t *testing.T) {
	t.Parallel()
	retrier := mustNew(t, mustSet(t, admitting(func(s *policy.Spec) { s.Retry.Budget = "" })), interceptor.WithBudget("", panicking{budget.Unlimited}))
	func() {
		defer func() { _ = recover() }()
		_ = retrier.Unary()(t.Context(), get, nil, nil, nil, answered)
	}()
	if got := inside.Admission(retrier); len(got) != 1 || got[0].Running != 0 {
		t.Errorf("%+v; want none to run", got)
	}
}

type panicking struct{ budget.Budget }

func (panicking) Observe(time.Time, budget.Event) { panic("budget") }

func TestAdmission_BoundedMemory(t *testing.T) {
	t.Parallel()
	c := admitting()
	c.Methods[0].Names = []string{"/"}
	retrier := mustNew(t, mustSet(t, c), quiet)
	must.Do(t, retrier.Unary()(t.Context(), "/a.B/Own", nil, nil, nil, answered, grpc.StaticMethod()))
	for i := range 2000 {
		must.Do(t, retrier.Unary()(t.Context(), fmt.Sprint("/a.B/M", i), nil, nil, nil, answered))
	}
	list := inside.Admission(retrier)
	own := slices.ContainsFunc(list, func(s inside.AdmissionState) bool { return s.Method == "/a.B/Own" })
	if n := len(list); n < 2 || n > 1025 || !own {
		t.Errorf("state of %d methods, of the client's own: %v; want 1025 at most, and that", n, own)
	}
}

func TestAdmissionConcurrently(t *testing.T) {
	t.Parallel()
	retrier := mustNew(t, mustSet(t, admitting()), quiet)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(levelled(t.Context(), policy.CriticalityCritical), time.Minute)
				_ = retrier.Unary()(ctx, get, nil, nil, nil, answered)
				cancel()
				_ = inside.Admission(retrier)
			}
		})
	}
	wg.Wait()
	if got := inside.Admission(retrier); len(got) != 1 || got[0].Running != 0 {
		t.Errorf("%+v; want none to run", got)
	}
}

// admitted is a call of a Retrier like those of BenchmarkSuccess, with and without admission.
func admitted(tb testing.TB, with policy.Admission) func() {
	tb.Helper()
	retry := policy.DefaultRetry()
	c := admitting(func(s *policy.Spec) { s.Retry, s.Admission = &retry, with })
	unary := mustNew(tb, mustSet(tb, c), quiet).Unary()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	tb.Cleanup(cancel)
	opts := []grpc.CallOption{grpc.StaticMethod()}
	return func() { _ = unary(ctx, get, nil, nil, nil, answered, opts...) }
}

func TestAdmissionAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, admitted(t, policy.AdmissionRefuse)); n > slack {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
}

// BenchmarkAdmission is a call that succeeds at once, with and without admission. In turns, it reports what admission
// costs.
func BenchmarkAdmission(b *testing.B) {
	with, without := admitted(b, policy.AdmissionRefuse), admitted(b, policy.AdmissionNone)
	for name, call := range map[string]func(){"with": with, "without": without} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
	b.Run("difference", func(b *testing.B) {
		thousand := func(call func()) time.Duration {
			began := time.Now()
			for range 1000 {
				call()
			}
			return time.Since(began)
		}
		var more []time.Duration
		for b.Loop() {
			more = append(more, thousand(with)-thousand(without))
		}
		slices.Sort(more)
		b.ReportMetric(float64(more[len(more)/2])/1000, "ns/call")
	})
}
