// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"cmp"
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
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/testserver"
)

// hedged is the policy of most tests here: 3 attempts, 100 ms from one to the next, and no budget.
func hedged(change ...func(*spec.Hedge)) spec.Config {
	h := &spec.Hedge{
		MaxAttempts: 3, HedgingDelay: 100 * ms, NonFatalStatusCodes: []codes.Code{codes.Unavailable}, Budget: "NONE",
	}
	for _, f := range change {
		f(h)
	}
	name := "/acme.orders.v1.OrderService/GetOrder"
	return spec.Config{Methods: []spec.MethodConfig{{Names: []string{name}, Policy: spec.Policy{Hedge: h}}}}
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

// places returns the results of the attempts, in the order of their ends.
func (s scene) places() string {
	var list []string
	for _, e := range s.attempts {
		list = append(list, fmt.Sprintf("%d %s", e.Attempt, placeOf(e)))
	}
	return strings.Join(list, ", ")
}

// placeOf returns whether an attempt won, lost, or was cancelled.
func placeOf(e interceptor.Event) string {
	switch e.Code {
	case codes.OK:
		return "won"
	case codes.Canceled:
		return "cancelled"
	default:
		return "lost"
	}
}

// byNumber puts attempts that were cancelled together in the order of their numbers.
func (s scene) byNumber() scene {
	cancelled := func(e interceptor.Event) bool { return placeOf(e) == "cancelled" }
	if first := slices.IndexFunc(s.attempts, cancelled); first >= 0 {
		slices.SortFunc(s.attempts[first:], func(a, b interceptor.Event) int { return cmp.Compare(a.Attempt, b.Attempt) })
	}
	return s
}

// If no second reply can be made, attempts run one after another.
func TestUnaryHedge_ReplyThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]any{"map": map[string]string{}, "nil": nil, "value": resettable{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sent, running, most atomic.Int64
				err := mustNew(t, mustSet(t, hedged())).Unary()(t.Context(), get, nil, reply, nil,
					func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
						most.Store(max(most.Load(), running.Add(1)))
						defer running.Add(-1)
						time.Sleep(time.Second)
						if sent.Add(1) < 3 {
							return status.Error(codes.Unavailable, "")
						}
						return nil
					})
				if err != nil || sent.Load() != 3 || most.Load() != 1 {
					t.Errorf("%v after %d attempts, of which %d ran at a time; want 3, one after the other", err, sent.Load(), most.Load())
				}
			})
		})
	}
}

// TestHedge has the attempts of calls that may have several at once, as hedges and beside slow ones: of unary calls, and of the
// kinds of streams that send one message.
func TestHedge(t *testing.T) {
	t.Parallel()
	hang, first, third := testserver.Hang(), text("first").Delay(time.Second), text("third")
	fails := func(message string) testserver.Step { return testserver.Fail(codes.Unavailable, message) }
	paid := hedged(func(h *spec.Hedge) { h.Budget = "" })
	two := hedged(func(h *spec.Hedge) { h.MaxAttempts = 2 })
	atOnce := hedged(func(h *spec.Hedge) { h.HedgingDelay = 0 })
	slow, unsafe := config(besides()), hedged()
	unsafe.Methods[0].Idempotency = "NONE"
	type script = []testserver.Step
	for name, row := range map[string]struct {
		config spec.Config
		script script
		want   string // what comes, or the error's text and reason
		took   time.Duration
		sent   string // the times of attempts since the first
		places string // those of attempts, in any order; "": whichever arrives last
	}{
		"each delay until one is answered":             {hedged(), script{hang, hang, third.Delay(50 * ms)}, "[third]", 250 * ms, "[0s 100ms 200ms]", "3 won, 1 cancelled, 2 cancelled"},
		"at once without a delay":                      {atOnce, script{hang, hang, third}, "[third]", 0, "[0s 0s 0s]", ""},
		"answered before the delay":                    {hedged(), script{text("first").Delay(99 * ms)}, "[first]", 99 * ms, "[0s]", "1 won"},
		"not declared safe":                            {unsafe, script{first}, "[first]", time.Second, "[0s]", "1 won"},
		"a failure that is not fatal sends the next":   {hedged(), script{hang, down().Delay(30 * ms), third.Delay(500 * ms)}, "[third]", 630 * ms, "[0s 100ms 130ms]", "2 lost, 3 won, 1 cancelled"},
		"the delay counts anew after that":             {hedged(), script{down().Delay(30 * ms), hang, third}, "[third]", 130 * ms, "[0s 30ms 130ms]", "1 lost, 3 won, 2 cancelled"},
		"one that has failed has no delay left":        {two, script{down().Delay(30 * ms), text("second").Delay(500 * ms)}, "[second]", 530 * ms, "[0s 30ms]", "1 lost, 2 won"},
		"a fatal failure ends the call":                {hedged(), script{hang, testserver.Fail(codes.NotFound, "no order").Delay(10 * ms)}, "no order non_retryable", 110 * ms, "[0s 100ms]", "2 lost, 1 cancelled"},
		"the last failure is the answer":               {hedged(), script{fails("one").Delay(900 * ms), fails("two").Delay(ms), fails("three").Delay(ms)}, "one attempts_exhausted", 900 * ms, "[0s 100ms 101ms]", "2 lost, 3 lost, 1 lost"},
		"a pushback delays the next":                   {hedged(), script{hang, down().Pushback("700").Delay(20 * ms), third}, "[third]", 820 * ms, "[0s 100ms 820ms]", "2 lost, 3 won, 1 cancelled"},
		"a pushback stops hedges, not those in flight": {hedged(), script{first, down().Pushback("-1"), third}, "[first]", time.Second, "[0s 100ms]", "2 lost, 1 won"},
		"it is the reason when all have failed":        {hedged(), script{fails("one").Delay(time.Second), down().Pushback("-1"), third}, "one pushback_stop", time.Second, "[0s 100ms]", "2 lost, 1 lost"},
		"refused beside one that runs":                 {paid, script{first}, "[first]", time.Second, "[0s]", "1 won"},
		"refused with nothing in flight":               {paid, script{fails("one").Delay(10 * ms)}, "one budget_exhausted", 10 * ms, "[0s]", "1 lost"},
		"slow: the first answers late":                 {slow, script{text("first").Delay(1500 * ms), hang}, "[first]", 1500 * ms, "[0s 1.1s]", "1 won, 2 cancelled"},
		"slow: the second answers":                     {slow, script{hang, text("second"), hang}, "[second]", 1100 * ms, "[0s 1.1s]", "2 won, 1 cancelled"},
		"slow: the first fails, the second answers":    {slow, script{down().Delay(1500 * ms), text("second").Delay(900 * ms), hang}, "[second]", 2000 * ms, "[0s 1.1s]", "1 lost, 2 won"},
		"slow: the first answers in the backoff":       {slow, script{text("first").Delay(1050 * ms), text("second")}, "[first]", 1050 * ms, "[0s]", "1 won"},
		"slow: the first fails in the backoff":         {slow, script{down().Delay(1050 * ms), text("second"), hang}, "[second]", 1150 * ms, "[0s 1.15s]", "1 lost, 2 won"},
	} {
		kinds := hedgedKinds()
		kinds["unary"] = nil
		for kind, desc := range kinds {
			t.Run(strings.ReplaceAll(name, " ", "_")+"/"+kind, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) {
					s.connect()
					s.On(get, row.script...)
					began := time.Now()
					var got string
					var err error
					if desc == nil {
						got, err = s.call(t.Context(), get)
						got = "[" + got + "]"
					} else {
						got, _, err = s.whole(t, desc)
						err = streamEnd(err)
					}
					took := time.Since(began)
					if err != nil {
						got = fmt.Sprint(status.Convert(err).Message(), " ", reasonOf(err))
					}
					sent, places, want := s.sent(), s.byNumber().places(), row.places
					places, want = sorted(places), sorted(want) // the ends of one moment are told in any order
					if got != row.want || took != row.took || sent != row.sent || places != want && want != "" {
						t.Errorf("got  %q after %v, sent %s: %s\nwant %q after %v, sent %s: %s", got, took, sent, places, row.want, row.took, row.sent, want)
					}
					s.overOnce(t, status.Code(err), s.Count(get))
				}, interceptor.WithBudget("", forAll(&purse{})))
			})
		}
	}
}

// sorted puts the places of attempts in the order of sending.
func sorted(places string) string {
	list := strings.Split(places, ", ")
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// besides makes a second attempt run in parallel with one that takes longer than a second.
func besides() spec.Retry {
	retry := plain()
	retry.PerAttemptTimeout = time.Second
	return retry
}

// Classifier and observers run without the call's lock: a hedge is sent while they wait for just that.
func TestUnaryHedge_CallbacksWithoutLock(t *testing.T) {
	t.Parallel()
	for _, blocked := range []string{"classifier", "observer"} {
		t.Run(blocked, func(t *testing.T) {
			answered := make(chan struct{})
			wait := func(callback string, err error) {
				if callback == blocked && err != nil {
					<-answered
				}
			}
			classify := interceptor.WithClassifier(func(_ context.Context, _ string, _ any, err error) interceptor.Verdict {
				wait("classifier", err)
				return interceptor.VerdictByCode
			})
			observe := interceptor.WithObserver(interceptor.Observer{
				Attempt: func(_ context.Context, e interceptor.Event) { wait("observer", e.Err) },
			})
			play(t, hedged(), func(t *testing.T, s scene) {
				answered = make(chan struct{}) // of the bubble
				answer := sync.OnceFunc(func() { close(answered) })
				s.On(get, down().Delay(50*ms), testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
					answer()
					return text("hedge")
				}))
				if got, err := s.call(t.Context(), get); got != "hedge" || err != nil {
					t.Errorf("got %q, %v; want the hedge's reply", got, err)
				}
			}, classify, observe)
		})
	}
}
