// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestAFatalFailureEndsAHedgedStream(t *testing.T) {
	for name, desc := range kinds() {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang(), testserver.Fail(codes.NotFound, "no such order").Delay(10*ms))
				_, took, err := s.whole(t, desc)
				if status.Code(err) != codes.NotFound || reasonOf(err) != policy.ReasonNonRetryable || took != 110*ms || s.ends() != "[1 cancelled 2 lost]" {
					t.Errorf("%v (%s) after %v: %s", err, reasonOf(err), took, s.ends())
				}
				s.overOnce(t, codes.NotFound, 2)
			})
		})
	}
}

func TestPushbackMovesTheNextHedgeOfAStream(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), down().Pushback("700").Delay(20*ms), takes(0, "third"))
		if got, _, err := s.whole(t, bidiStream); got != "[third]" || err != io.EOF || s.sent() != "[0s 100ms 820ms]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestANegativePushbackStopsHedgesOfAStreamButNotThoseInFlight(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, takes(time.Second, "first"), down().Pushback("-1"), takes(0, "third"))
		if got, _, err := s.whole(t, serverStream); got != "[first]" || err != io.EOF || s.sent() != "[0s 100ms]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestTheLastFailureIsTheAnswerWhenAllHedgesOfAStreamFail(t *testing.T) {
	for want, row := range map[policy.Reason]testserver.Step{
		policy.ReasonAttemptsExhausted: testserver.Fail(codes.Unavailable, "two"),
		policy.ReasonPushbackStop:      testserver.Fail(codes.Unavailable, "two").Pushback("-1"),
	} {
		t.Run(string(want), func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unavailable, "one").Delay(900*ms), row, testserver.Fail(codes.Unavailable, "three"))
				_, took, err := s.whole(t, bidiStream)
				if status.Convert(err).Message() != "one" || reasonOf(err) != want || took != 900*ms {
					t.Errorf("%v (%s) after %v", err, reasonOf(err), took)
				}
			})
		})
	}
}

func TestADeniedHedgeLeavesTheRunningStreamAlone(t *testing.T) {
	broke := &purse{}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, takes(time.Second, "first"))
		if got, _, err := s.whole(t, bidiStream); got != "[first]" || err != io.EOF || s.sent() != "[0s]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
		if d := s.decisions[0].Decision; len(s.decisions) != 1 || d.Reason != policy.ReasonBudgetExhausted {
			t.Errorf("%+v", s.decisions)
		}
	}, interceptor.WithBudget("", broke))
}

func TestADeniedHedgeWithNothingInFlightEndsTheStream(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, down().Delay(10*ms))
		if _, took, err := s.whole(t, bidiStream); reasonOf(err) != policy.ReasonBudgetExhausted || took != 10*ms {
			t.Errorf("%v (%s) after %v", err, reasonOf(err), took)
		}
	}, interceptor.WithBudget("", &purse{}))
}

func TestCancellingAHedgedStreamReturnsAtOnce(t *testing.T) {
	for name, desc := range kinds() {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang())
				for i, after := range []time.Duration{50 * ms, 150 * ms, 5 * time.Second} {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(after, cancel)
					start := time.Now()
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					if _, err := receive(stream); status.Code(err) != codes.Canceled || time.Since(start) != after {
						t.Errorf("%v after %v; want CANCELED after %v", err, time.Since(start), after)
					}
					synctest.Wait()
					if len(s.calls) != i+1 || len(s.attempts) != s.Count(get) {
						t.Errorf("%d calls and %d of %d attempts have ended", len(s.calls), len(s.attempts), s.Count(get))
					}
				}
			})
		})
	}
}

func TestAHedgedStreamEndsWithItsDeadline(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
		defer cancel()
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		time.Sleep(time.Second) // and nobody receives
		s.overOnce(t, codes.DeadlineExceeded, 2)
		if s.calls[0].Elapsed != 150*ms || s.retrier.Replayed() != 0 {
			t.Errorf("after %v, %d bytes kept", s.calls[0].Elapsed, s.retrier.Replayed())
		}
	})
}
