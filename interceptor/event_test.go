// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// history has the events of a call's attempts.
func (j *journal) history() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	for _, e := range j.decisions {
		fmt.Fprintf(&b, "after %d %v: %s\n", e.Attempt, e.Code, e.Reason)
	}
	slices.SortFunc(j.attempts, func(a, b interceptor.Event) int { return a.Attempt - b.Attempt })
	for _, e := range j.attempts {
		if e.Hedge {
			fmt.Fprintf(&b, "%d is a hedge\n", e.Attempt)
		}
	}
	for _, e := range j.calls {
		fmt.Fprintf(&b, "%d retries, %d hedges, %s", max(e.Attempts-1-e.Hedges, 0), e.Hedges, e.Reason)
	}
	return b.String()
}

func TestEvent_History(t *testing.T) {
	slow := plain()
	slow.PerAttemptTimeout = 50 * ms
	place := slow
	place.OnAttemptTimeout = "RETRY"
	for name, row := range map[string]struct {
		config spec.Config
		script []testserver.Step
		cancel bool // while it waits
		want   string
	}{
		"slow, beside": {config(slow), []testserver.Step{testserver.Hang().Times(1), down().Times(1), text("fine")}, false, "after 1 DeadlineExceeded: hedge\n" +
			"after 2 Unavailable: retry\n2 is a hedge\n1 retries, 1 hedges, succeeded"},
		"slow, in place": {config(place), []testserver.Step{testserver.Hang().Times(1), text("fine")}, false, "after 1 DeadlineExceeded: retry\n" +
			"1 retries, 0 hedges, succeeded"},
		"hedged": {hedged(), []testserver.Step{testserver.Hang().Times(2), text("fine")}, false, "after 1 DeadlineExceeded: hedge\n" +
			"after 2 DeadlineExceeded: hedge\n2 is a hedge\n3 is a hedge\n0 retries, 2 hedges, succeeded"},
		"cancelled in the backoff": {config(plain()), []testserver.Step{down()}, true, "after 1 Unavailable: retry\nafter 1 Canceled: cancelled\n0 retries, 0 hedges, cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, row.script...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.cancel {
					time.AfterFunc(50*ms, cancel)
				}
				_, _ = s.call(ctx, get)
				if got := s.history(); got != row.want {
					t.Errorf("%s\nwant\n%s", got, row.want)
				}
			})
		})
	}
}

// With an observer of attempts, no call ends by Succeeded, so one more has none.
func TestEvent_StaticMethodAndBudget(t *testing.T) {
	play(t, budgeted(bucketOf(10)), func(t *testing.T, s scene) {
		fast := new(journal)
		o := fast.observer()
		o.Attempt = nil
		conn := s.Dial(t, mustNew(t, mustSet(t, budgeted(bucketOf(10))), interceptor.WithObserver(o)).DialOptions()...)
		for name, client := range map[string]scene{
			"watched": s, "fast": {Server: s.Server, journal: fast, conn: conn},
		} {
			for _, options := range [][]grpc.CallOption{{grpc.StaticMethod()}, nil} {
				s.Reset()
				s.On(get, down().Times(1), text("fine"))
				*client.journal = journal{}
				_, _ = client.call(t.Context(), get, options...) // with a failure, and without
				_, _ = client.call(t.Context(), get, options...)
				static := len(options) > 0
				if len(client.calls) != 2 || len(client.decisions) != 1 {
					t.Fatalf("%s: %+v %+v", name, client.calls, client.decisions)
				}
				if d := client.decisions[0]; d.StaticMethod != static || d.Budget != "orders" {
					t.Errorf("%s, static %v: %+v", name, static, d)
				}
				for _, c := range client.calls {
					if c.StaticMethod != static || c.Budget != "orders" {
						t.Errorf("%s, static %v: %+v", name, static, c)
					}
				}
				if c := client.calls[0]; c.Attempts-1-c.Hedges != 1 {
					t.Errorf("%s: %+v", name, c)
				}
			}
		}
	})
}

// A call has a start and an end event, with its context; a disabled call has neither.
func TestEvent_CallStart(t *testing.T) {
	type key struct{}
	for name, attempts := range map[string]bool{"fast": false, "watched": true} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var told []string
			tell := func(what string, e interceptor.Event) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, what+e.Method+" of "+e.Target)
			}
			within := func(ctx context.Context, _ interceptor.Event) {
				if ctx.Value(key{}) == nil {
					t.Error("something comes without the call's context")
				}
			}
			o := interceptor.Observer{
				CallStart: func(ctx context.Context, e interceptor.Event) context.Context {
					tell("begins: ", e)
					return context.WithValue(ctx, key{}, true)
				},
				CallEnd: func(ctx context.Context, e interceptor.CallEnd) {
					same := interceptor.Event{Method: e.Method, Target: e.Target}
					within(ctx, same)
					tell("ends: ", same)
				},
				Decision: within,
			}
			if attempts {
				o.Attempt = within
			}
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.Dial(t, append(mustNew(t, mustSet(t, config(plain())), interceptor.WithObserver(o), quiet).DialOptions(),
					grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						if len(told) > 0 {
							within(ctx, interceptor.Event{})
						}
						return invoke(ctx, method, req, reply, cc, opts...)
					}))...)
				s.On(get, down())
				_, _ = s.call(t.Context(), get, interceptor.Disable())
				if told != nil {
					t.Errorf("of a call that passes by: %q", told)
				}
				want := []string{"begins: " + get + " of " + s.conn.Target(), "ends: " + get + " of " + s.conn.Target()}
				for kind, desc := range callKinds {
					for _, step := range []testserver.Step{down(), text("fine")} {
						told = nil
						s.On(get, step)
						_ = exchange(t.Context(), s.conn, desc, get)
						if synctest.Wait(); !slices.Equal(told, want) {
							t.Errorf("%s: %q; want %q", kind, told, want)
						}
					}
				}
			})
		})
	}
}

// seen records the attempts that gRPC reports.
type seen struct{ numbers }

func (s *seen) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	_, _ = s.GetRequestMetadata(ctx)
	return ctx
}
func (*seen) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*seen) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*seen) HandleConn(context.Context, stats.ConnStats)                       {}

func TestWithStatsHandler(t *testing.T) {
	one, two := new(seen), new(seen)
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Hang(), text("3"))
		if _, err := s.call(t.Context(), get); err != nil {
			t.Error(err)
		}
		for _, h := range []*seen{one, two} {
			if got := h.take(); got != "[1 2h 3h]" {
				t.Errorf("attempts %s", got)
			}
		}
	}, interceptor.WithStatsHandler(one), interceptor.WithStatsHandler(two))
	if _, err := interceptor.New(mustSet(t, hedged()), interceptor.WithStatsHandler(nil)); err == nil {
		t.Error("nil is taken for a handler")
	}
}

// Observers come and go while calls run. Permanent observers get all events.
func TestRetrier_ObserveConcurrently(t *testing.T) {
	t.Parallel()
	type worker struct{}
	var always atomic.Int64
	retrier := mustNew(t, mustSet(t, config(plain())), quiet)
	retrier.AddObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.CallEnd) { always.Add(1) }})
	unary := retrier.Unary()
	const workers, rounds = 8, 100
	var all sync.WaitGroup
	for number := range workers {
		all.Go(func() {
			ctx := context.WithValue(t.Context(), worker{}, number)
			heard := ""
			tell := func(what string) func(context.Context, interceptor.Event) {
				return func(ctx context.Context, _ interceptor.Event) {
					if ctx.Value(worker{}) == number {
						heard += what
					}
				}
			}
			start, end := tell("start "), tell("call ")
			o := interceptor.Observer{
				CallStart: func(ctx context.Context, e interceptor.Event) context.Context { start(ctx, e); return ctx },
				Attempt:   tell("attempt "), Decision: tell("decision "),
				CallEnd: func(ctx context.Context, _ interceptor.CallEnd) { end(ctx, interceptor.Event{}) },
			}
			call := func() string {
				heard = ""
				_ = unary(ctx, get, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					return status.Error(codes.NotFound, "no")
				})
				return heard
			}
			for range rounds {
				stop := retrier.AddObserver(o)
				if got := call(); got != "start decision attempt call " && got != "start attempt decision call " {
					t.Errorf("an observer hears %q", got)
				}
				stop()
				if got := call(); got != "" {
					t.Errorf("after stop has returned, an observer hears %q", got)
				}
				stop() // does nothing more
			}
		})
	}
	all.Wait()
	if got := always.Load(); got != 2*workers*rounds {
		t.Errorf("the observer that stays hears %d calls; want %d", got, 2*workers*rounds)
	}
}

func TestObserverSent(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		script []testserver.Step
		want   []string
	}{
		"two retries":       {config(plain()), []testserver.Step{down().Times(2), text("")}, []string{"1 retry 100ms", "2 retry 200ms"}},
		"none":              {config(plain()), []testserver.Step{text("")}, nil},
		"one of two hedges": {hedged(), []testserver.Step{testserver.Hang().Times(1), text("")}, []string{"1 hedge 0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var sent []string
			note := interceptor.WithObserver(interceptor.Observer{Sent: func(_ context.Context, e interceptor.Event) {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, fmt.Sprint(e.Attempt, " ", e.Reason, " ", e.Delay))
			}})
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, row.script...)
				calls := []func(context.Context) error{func(ctx context.Context) error { _, err := s.call(ctx, get); return err }}
				of := kinds()
				if row.config.Methods[0].Hedge != nil {
					of = hedgedKinds()
				}
				for _, desc := range of {
					calls = append(calls, func(context.Context) error { _, _, err := s.whole(t, desc); return err })
				}
				for i, call := range calls {
					sent = nil
					s.Reset()
					s.On(get, row.script...)
					_ = call(t.Context())
					synctest.Wait()
					if !slices.Equal(sent, row.want) {
						t.Errorf("kind %d: heard of %q; want %q", i, sent, row.want)
					}
				}
			}, note)
		})
	}
}

func TestEvent(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Delay(30*ms).Times(2), text(""))
		_, _ = s.call(t.Context(), get)
		if len(s.attempts) != 3 || len(s.decisions) != 2 || len(s.calls) != 1 {
			t.Fatalf("%d attempts, %d decisions, %d calls; want 3, 2, 1", len(s.attempts), len(s.decisions), len(s.calls))
		}
		second := s.attempts[1]
		if second.Attempt != 2 || second.Code != codes.Unavailable || second.Elapsed != 30*ms ||
			second.Peer == nil || second.Method != get || second.Target != s.conn.Target() {
			t.Errorf("second attempt %+v", second)
		}
		if d := s.decisions[1]; d.Attempt != 2 || d.Code != codes.Unavailable || !d.WillRetry || d.Delay != 200*ms || timedOut(d) {
			t.Errorf("second decision %+v", d)
		}
		if c := s.calls[0]; c.Attempts != 3 || c.Elapsed != 360*ms || c.Waited != 300*ms || c.Code != codes.OK || c.Err != nil || c.Reason != policy.ReasonSucceeded {
			t.Errorf("call %+v", c)
		}
	})
}

// timedOut reports whether a decision is about a slow attempt, which may still run.
func timedOut(d interceptor.Event) bool { return d.Code == codes.DeadlineExceeded && d.Err == nil }

// An observer that handles no event of calls costs a call nothing: its stream is gRPC's own, and a unary call doesn't ask for its peer.
func TestObserver_OfOtherEvents(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		observer interceptor.Observer
		passed   bool
	}{
		"other events": {interceptor.Observer{
			Diagnostic: func(policy.Diagnostic) {},
			Reload:     func(*policy.Set, []string, error) {},
			ModeChange: func(_, _ interceptor.ModeSwitch) {},
		}, true},
		"one event of calls": {interceptor.Observer{Sent: func(context.Context, interceptor.Event) {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, mustSet(t, spec.Config{}), interceptor.WithObserver(row.observer))
				var seen []string
				note := func(opts []grpc.CallOption) {
					for _, o := range opts {
						seen = append(seen, fmt.Sprintf("%T", o))
					}
				}
				conn := testserver.Start(t).Dial(t, append(r.DialOptions(),
					grpc.WithChainUnaryInterceptor(func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						note(opts)
						return nil
					}),
					grpc.WithChainStreamInterceptor(func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						note(opts)
						return nil, status.Error(codes.Unavailable, "")
					}))...)
				_, _ = conn.NewStream(t.Context(), serverStream, get)
				if got := fmt.Sprint(seen); row.passed != (got == "[interceptor.insideOption]") {
					t.Errorf("gRPC gets the options %s for a stream", got)
				}
				seen = nil
				_ = conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue))
				if got := fmt.Sprint(seen); row.passed == slices.Contains(seen, "grpc.PeerCallOption") {
					t.Errorf("gRPC gets the options %s for a unary call", got)
				}
			})
		})
	}
}
