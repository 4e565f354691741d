// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// hedged is the policy of most tests here: 3 attempts, 100 ms from one to the next, and no budget.
func hedged(change ...func(*policy.HedgeSpec)) policy.Config {
	h := &policy.HedgeSpec{
		MaxAttempts: 3, Delay: 100 * ms, NonFatal: policy.Codes(codes.Unavailable), Budget: policy.NoBudget,
	}
	for _, f := range change {
		f(h)
	}
	name := policy.Name{Service: "acme.orders.v1.OrderService", Method: "GetOrder"}
	return policy.Config{Methods: []policy.MethodConfig{{Names: []policy.Name{name}, Spec: policy.Spec{Hedge: h}}}}
}

// sent are the times of the attempts that the server saw, since the first.
func (s scene) sent() string {
	synctest.Wait()
	var list []time.Duration
	for _, a := range s.Attempts() {
		list = append(list, a.Time.Sub(s.Attempts()[0].Time))
	}
	return fmt.Sprint(list)
}

// places are how the attempts came out, in the order in which they ended.
func (s scene) places() string {
	var list []string
	for _, e := range s.attempts {
		list = append(list, fmt.Sprintf("%d %s", e.Number, e.Place))
	}
	return fmt.Sprint(list)
}

func TestUnaryHedge_EachDelay(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Hang(), text("third").Delay(50*ms))
		began := time.Now()
		got, err := s.call(t.Context(), get)
		if got != "third" || err != nil || time.Since(began) != 250*ms {
			t.Errorf("%q, %v after %v", got, err, time.Since(began))
		}
		if s.sent() != "[0s 100ms 200ms]" || s.places() != "[3 won 1 cancelled 2 cancelled]" && s.places() != "[3 won 2 cancelled 1 cancelled]" {
			t.Errorf("sent %s; %s", s.sent(), s.places())
		}
	})
}

func TestUnaryHedge_AnsweredInTime(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, text("first").Delay(99*ms))
		for range 3 {
			if got, err := s.call(t.Context(), get); got != "first" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		if s.Count(get) != 3 || s.places() != "[1  1  1 ]" {
			t.Errorf("%d attempts; %s", s.Count(get), s.places())
		}
	})
}

func TestUnaryHedge_NonFatal(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), down().Delay(30*ms), text("third").Delay(500*ms))
		if got, err := s.call(t.Context(), get); got != "third" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if s.sent() != "[0s 100ms 130ms]" {
			t.Errorf("sent %s", s.sent())
		}
	})
}

func TestUnaryHedge_DelayAfterNonFatal(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down().Delay(30*ms), testserver.Hang(), text("third"))
		if got, err := s.call(t.Context(), get); got != "third" || err != nil || s.sent() != "[0s 30ms 130ms]" {
			t.Errorf("%q, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestUnaryHedge_Fatal(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Fail(codes.NotFound, "no such order").Delay(10*ms))
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if status.Code(err) != codes.NotFound || reasonOf(err) != policy.ReasonNonRetryable || time.Since(began) != 110*ms {
			t.Errorf("%v (%s) after %v", err, reasonOf(err), time.Since(began))
		}
	})
}

func TestUnaryHedge_Pushback(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), down().Pushback("700").Delay(20*ms), text("third"))
		if got, err := s.call(t.Context(), get); got != "third" || err != nil || s.sent() != "[0s 100ms 820ms]" {
			t.Errorf("%q, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestUnaryHedge_PushbackStop(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, text("first").Delay(time.Second), down().Pushback("-1"), text("third"))
		if got, err := s.call(t.Context(), get); got != "first" || err != nil || s.sent() != "[0s 100ms]" {
			t.Errorf("%q, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestUnaryHedge_PushbackStopIsTheReason(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down().Delay(time.Second), down().Pushback("-1"), text("third"))
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonPushbackStop || s.sent() != "[0s 100ms]" {
			t.Errorf("%v (%s), sent %s", err, reasonOf(err), s.sent())
		}
	})
}

func TestUnaryHedge_AllFail(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "one").Delay(900*ms), testserver.Fail(codes.Unavailable, "two").Delay(time.Millisecond),
			testserver.Fail(codes.Unavailable, "three").Delay(ms))
		_, err := s.call(t.Context(), get)
		if status.Convert(err).Message() != "one" || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	})
}

func TestUnaryHedge_Denied(t *testing.T) {
	broke := &purse{}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, text("first").Delay(time.Second))
		if got, err := s.call(t.Context(), get); got != "first" || err != nil || s.Count(get) != 1 {
			t.Errorf("%q, %v", got, err)
		}
		if d := s.decisions[0].Decision; len(s.decisions) != 1 || d.Reason != policy.ReasonBudgetExhausted {
			t.Errorf("%+v", s.decisions)
		}
	}, interceptor.WithBudget("", broke))
}

func TestUnaryHedge_DeniedAfterFailure(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, down().Delay(10*ms))
		began := time.Now()
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonBudgetExhausted || time.Since(began) != 10*ms {
			t.Errorf("%v (%s) after %v", err, reasonOf(err), time.Since(began))
		}
	}, interceptor.WithBudget("", &purse{}))
}

func TestUnaryHedge_LosersMetadata(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		mark := func(step testserver.Step, name string) testserver.Step {
			return step.Header(metadata.Pairs("who", name)).Trailer(metadata.Pairs("who", name))
		}
		s.On(get, mark(testserver.Hang(), "first"), mark(text("second"), "second"))
		var (
			header, trailer metadata.MD
			from            peer.Peer
			finished        []error
		)
		got, err := s.call(t.Context(), get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		if got != "second" || err != nil || fmt.Sprint(header["who"], trailer["who"], finished) != "[second] [second] [<nil>]" || from.Addr == nil {
			t.Errorf("%q, %v, header %v, trailer %v, peer %v, finished %v", got, err, header["who"], trailer["who"], from, finished)
		}
	})
}

func TestUnaryHedge_Unsafe(t *testing.T) {
	c := hedged()
	c.Methods[0].Idempotency = policy.IdempotencyNone
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, text("first").Delay(time.Second))
		if got, err := s.call(t.Context(), get); got != "first" || err != nil || s.Count(get) != 1 {
			t.Errorf("%q, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

func TestUnaryHedge_Cancel(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		for _, after := range []time.Duration{50 * ms, 150 * ms, 5 * time.Second} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(after, cancel)
			began := time.Now()
			if _, err := s.call(ctx, get); status.Code(err) != codes.Canceled || time.Since(began) != after {
				t.Errorf("%v after %v; want CANCELED after %v", err, time.Since(began), after)
			}
		}
	})
}

func TestUnaryHedge_PreviousAttempts(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Hang(), text("third"))
		_, _ = s.call(t.Context(), get)
		for i, a := range s.Attempts() {
			want := []string{"[]", "[1]", "[2]"}[i]
			if got := fmt.Sprint(a.Metadata.Get("grpc-previous-rpc-attempts")); got != want {
				t.Errorf("attempt %d: %s; want %s", i+1, got, want)
			}
		}
	})
}

// besides has a second attempt sent beside one that takes longer than a second.
func besides() policy.RetrySpec {
	retry := plain()
	retry.PerAttemptTimeout = time.Second
	return retry
}

func TestUnaryHedge_SlowAttempt(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second testserver.Step
		want, places  string
		after         time.Duration
	}{
		{"the first answers late", text("first").Delay(1500 * ms), testserver.Hang(), "first", "[1 won 2 cancelled]", 1500 * ms},
		{"the second answers", testserver.Hang(), text("second"), "second", "[2 won 1 cancelled]", 1100 * ms},
		{"the first fails, the second answers", down().Delay(1500 * ms), text("second").Delay(900 * ms), "second", "[1 lost 2 won]", 2000 * ms},
		{"the first answers during the backoff", text("first").Delay(1050 * ms), text("second"), "first", "[1 ]", 1050 * ms},
	} {
		t.Run(row.name, func(t *testing.T) {
			play(t, config(besides()), func(t *testing.T, s scene) {
				s.On(get, row.first, row.second, testserver.Hang())
				began := time.Now()
				got, err := s.call(t.Context(), get)
				if got != row.want || err != nil || time.Since(began) != row.after || s.places() != row.places {
					t.Errorf("%q, %v after %v: %s; want %q after %v: %s", got, err, time.Since(began), s.places(), row.want, row.after, row.places)
				}
			})
		})
	}
}

func TestUnaryHedge_EveryOrder(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.Delay = 2 * ms }), func(t *testing.T, s scene) {
		srv := testserver.Start(t, testserver.NoRecord())
		srv.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			request := new(wrapperspb.StringValue)
			if err := proto.Unmarshal(a.Requests[0], request); err != nil {
				return testserver.Fail(codes.Internal, err.Error())
			}
			step := text(request.GetValue()).Trailer(metadata.Pairs("for", request.GetValue()))
			if rand.IntN(4) == 0 {
				step = testserver.Fail(codes.Unavailable)
			}
			return step.Delay(time.Duration(rand.IntN(8)) * ms)
		}))
		conn := srv.Dial(t, s.retrier.DialOptions()...)
		var wg sync.WaitGroup
		for g := range 20 {
			wg.Go(func() {
				request, reply := new(wrapperspb.StringValue), new(wrapperspb.StringValue)
				for i := range 10_000 / 20 {
					name := fmt.Sprintf("%d/%d", g, i)
					request.Value = name // the losers of the call before must not look at it any more
					var (
						trailer  metadata.MD
						from     peer.Peer
						finished int
					)
					err := conn.Invoke(t.Context(), get, request, reply, grpc.Trailer(&trailer), grpc.Peer(&from),
						grpc.OnFinish(func(error) { finished++ }))
					if err == nil && (reply.GetValue() != name || trailer.Get("for")[0] != name) || finished != 1 {
						t.Errorf("call %s: %q with %v, finished %d times", name, reply.GetValue(), trailer, finished)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, e := range s.calls {
			if e.Err != nil && e.Reason != policy.ReasonAttemptsExhausted {
				t.Errorf("%v: %s", e.Err, e.Reason)
			}
		}
	})
}

// The second attempt is sent 30 ms after the first, and was never slow: it is the last one.
func TestUnaryHedge_DelayOfFailed(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.MaxAttempts = 2 }), func(t *testing.T, s scene) {
		s.On(get, down().Delay(30*ms), text("second").Delay(500*ms))
		if got, err := s.call(t.Context(), get); got != "second" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if len(s.decisions) != 1 || s.decisions[0].TimedOut {
			t.Errorf("%+v", s.decisions)
		}
	})
}

// hedgedClients are clients whose hedges are not fired: by a delay, and by a quantile.
func hedgedClients(tb testing.TB) map[string]grpc.UnaryClientInterceptor {
	tb.Helper()
	slow := func(h *policy.HedgeSpec) { h.Delay, h.Budget = time.Minute, "" }
	follow := func(h *policy.HedgeSpec) {
		h.Delay, h.Quantile = time.Minute, &policy.QuantileSpec{Quantile: 0.95, Min: time.Minute}
	}
	return map[string]grpc.UnaryClientInterceptor{
		"delay":    mustNew(tb, mustSet(tb, hedged(slow))).Unary(),
		"quantile": mustNew(tb, mustSet(tb, hedged(slow, follow))).Unary(),
	}
}

func TestUnaryHedge_NotFiredAllocatesLittle(t *testing.T) {
	for name, unary := range hedgedClients(t) {
		ctx, reply, opts := context.Background(), new(emptypb.Empty), []grpc.CallOption{grpc.StaticMethod()}
		n := testing.AllocsPerRun(1000, func() { _ = unary(ctx, get, nil, reply, nil, answered, opts...) })
		if n > 3+slack {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkHedgeNotFired(b *testing.B) {
	for name, unary := range hedgedClients(b) {
		b.Run(name, func(b *testing.B) {
			ctx, reply, opts := context.Background(), new(emptypb.Empty), []grpc.CallOption{grpc.StaticMethod()}
			b.ReportAllocs()
			for b.Loop() {
				_ = unary(ctx, get, nil, reply, nil, answered, opts...)
			}
		})
	}
}
