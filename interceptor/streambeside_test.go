// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestASlowStreamGoesOnBesideTheNextAttempt(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second testserver.Step
		want, places  string
		after         time.Duration
	}{
		{"the first answers late", takes(1500*ms, "first"), testserver.Hang(), "[first]", "[1 won 2 cancelled]", 1500 * ms},
		{"the second answers", testserver.Hang(), takes(0, "second"), "[second]", "[1 cancelled 2 won]", 1100 * ms},
		{"the first fails, the second answers", down().Delay(1500 * ms), takes(900*ms, "second"), "[second]", "[1 lost 2 won]", 2000 * ms},
		{"the first answers during the backoff", takes(1050*ms, "first"), takes(0, "second"), "[first]", "[1 ]", 1050 * ms},
		{"the first fails during the backoff", down().Delay(1050 * ms), takes(0, "second"), "[second]", "[1  2 ]", 1150 * ms},
	} {
		for kind, desc := range kinds() {
			t.Run(row.name+"/"+kind, func(t *testing.T) {
				play(t, config(besides()), func(t *testing.T, s scene) {
					s.On(get, row.first, row.second, testserver.Hang())
					got, took, err := s.whole(t, desc)
					if got != row.want || err != io.EOF || took != row.after || s.ends() != row.places {
						t.Errorf("%s, %v after %v: %s; want %s after %v: %s", got, err, took, s.ends(), row.want, row.after, row.places)
					}
				})
			})
		}
	}
}

// What was decided about the slow attempt, the budget pays once, as for a slow one.
func TestAnAttemptBesideASlowStreamIsPaidAsOne(t *testing.T) {
	retry := besides()
	retry.Budget = ""
	purse := &purse{grants: 10}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(0, "second"))
		if got, _, err := s.whole(t, bidiStream); got != "[second]" || err != io.EOF {
			t.Errorf("%s, %v", got, err)
		}
		if d := s.decisions[0]; !d.TimedOut || d.Decision.Reason != policy.ReasonHedge {
			t.Errorf("%+v", d)
		}
		want := fmt.Sprintf("asked [%v], failed 1, returned 0, refunded 1, ok 1, bad 0", budget.KindTimeout)
		if purse.String() != want {
			t.Errorf("the budget: %v; want %s", purse, want)
		}
	}, interceptor.WithBudget("", purse))
}

func TestAResumptionIsHedged(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1), say("1", "2")).Then(down()),
			testserver.Hang(),
			testserver.Play(testserver.Receive(1), say("3", "4")))
		next := func(last proto.Message) (proto.Message, bool) {
			m, ok := last.(*wrapperspb.StringValue)
			return wrapperspb.String("after " + m.GetValue()), ok
		}
		got, _, err := s.whole(t, serverStream, interceptor.Resume(next))
		if got != "[1 2 3 4]" || err != io.EOF || s.sent() != "[0s 0s 100ms]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[x] [after 2] [after 2]]" {
			t.Errorf("the attempts heard %s", heard)
		}
		s.overOnce(t, codes.OK, 3)
	})
}

// The first message after a cut comes from a race again, and is the one that the next cut resumes after.
func TestAResumptionThatWasHedgedIsResumed(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.MaxAttempts = 4 }), func(t *testing.T, s scene) {
		cut := func(texts ...string) testserver.Step {
			return testserver.Play(testserver.Receive(1), say(texts...)).Then(down())
		}
		s.On(get, cut("1"), testserver.Hang(), cut("2"), cut("3"), down())
		next := func(last proto.Message) (proto.Message, bool) { return proto.Clone(last), true }
		got, _, err := s.whole(t, serverStream, interceptor.Resume(next))
		if got != "[1 2 3]" || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%s, %v", got, err)
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[x] [1] [1] [2] [3] [3] [3]]" {
			t.Errorf("the attempts heard %s", heard)
		}
	})
}

func TestStreamsAreHedgedByTheLatencyOfTheirFirstMessages(t *testing.T) {
	follow := func(h *policy.HedgeSpec) {
		h.Delay, h.Quantile = time.Minute, &policy.QuantileSpec{Quantile: 0.9}
	}
	play(t, hedged(follow), func(t *testing.T, s scene) {
		usual := testserver.Play(testserver.Receive(1), testserver.Pause(20*ms), say("a"), testserver.Pause(time.Second), say("b"))
		s.On(get, slices.Repeat([]testserver.Step{usual}, 40)...)
		for range 40 {
			if got, _, err := s.whole(t, serverStream); got != "[a b]" || err != io.EOF {
				t.Fatalf("%s, %v", got, err)
			}
		}
		s.Reset()
		s.On(get, testserver.Hang(), takes(0, "second"))
		got, took, _ := s.whole(t, serverStream)
		if got != "[second]" || took < 20*ms || took > 21*ms {
			t.Errorf("%s after %v; want it hedged after 20 ms", got, took)
		}
	})
}
