// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// The message of the first attempt is held up, by an inner interceptor, until the second has won.
func TestAMessageThatComesAfterAnotherAttemptHasWonIsDropped(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return &lateReceiver{stream, func() { time.Sleep(time.Second) }}
			}
			return stream
		})
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Pause(50*ms), say("1", "1", "1"), testserver.Pause(time.Hour)),
			testserver.Play(testserver.Receive(1), say("2"), testserver.Pause(100*ms), say("2")))
		got, took, err := s.whole(t, serverStream)
		if got != "[2 2]" || err != io.EOF || s.ends() != "[1 cancelled 2 won]" {
			t.Errorf("%s, %v after %v: %s", got, err, took, s.ends())
		}
	})
}

// The call ends while its first message is on its way, and the application makes no other call.
func TestAStreamThatIsCancelledAsItIsAnsweredIsReleased(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		s = s.within(t, func(_ context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
			return &lateReceiver{stream, func() { cancel(); time.Sleep(ms) }}
		})
		s.On(get, testserver.Play(testserver.Receive(1), say("a"), testserver.Pause(time.Hour)))
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		time.Sleep(time.Second)
		s.overOnce(t, codes.Canceled, 1)
	}, described(t))
}

func TestAnAttemptThatRefusesAMessageOnThisSideEndsAHedgedStream(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		gate := make(chan struct{})
		close(gate)
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 2 {
				return slow{stream, gate, status.Error(codes.Unavailable, "an interceptor's no")}
			}
			return stream
		})
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		e, _ := errors.AsType[*interceptor.Error](err)
		if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != policy.CommitUnsendable || s.sent() != "[0s 100ms]" {
			t.Errorf("%v, %+v, sent %s", err, e, s.sent())
		}
	})
}

func TestAHedgeOfAStreamIsPaidAsOne(t *testing.T) {
	purse := &purse{grants: 10}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(0, "second"))
		_, _, _ = s.whole(t, bidiStream)
		synctest.Wait()
		want := fmt.Sprintf("asked [%v], failed 0, returned 0, refunded 1, ok 1, bad 0", budget.KindHedge)
		if purse.String() != want {
			t.Errorf("the budget: %v; want %s", purse, want)
		}
	}, interceptor.WithBudget("", purse))
}

// What commits the application commits it to the oldest attempt that runs, and the others are cancelled.
func TestTheApplicationCommitsAHedgedStreamToTheOldestAttempt(t *testing.T) {
	for why, commit := range map[policy.Commit]func(t *testing.T, s scene, stream grpc.ClientStream){
		policy.CommitContext: func(t *testing.T, _ scene, stream grpc.ClientStream) {
			t.Helper()
			if stream.Context().Err() != nil {
				t.Error("the context has ended")
			}
		},
		policy.CommitPreparedMessage: func(t *testing.T, s scene, stream grpc.ClientStream) {
			t.Helper()
			if err := stream.SendMsg(s.prepared(t)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(string(why), func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, down().Delay(30*ms), down().Delay(time.Second), testserver.Hang())
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				time.Sleep(500 * ms) // the first has failed, the second and the third run
				commit(t, s, stream)
				start := time.Now()
				_, err := receive(stream)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != why || s.Count(get) != 3 {
					t.Fatalf("%v, %+v", err, e)
				}
				if time.Since(start) != 530*ms || s.ends() != "[1  2 lost 3 cancelled]" {
					t.Errorf("after %v: %s", time.Since(start), s.ends())
				}
			})
		})
	}
}

func TestHeadersThatTheApplicationAsksForCommitAHedgedStream(t *testing.T) {
	brings := func(after time.Duration, name string) testserver.Step {
		return testserver.Play(testserver.Pause(after), testserver.SendHeader(metadata.Pairs("who", name)),
			testserver.Pause(time.Second), say(name))
	}
	for name, row := range map[string]struct {
		ask           time.Duration // when
		first, second testserver.Step
		want, sent    string
	}{
		"that are not there yet":    {0, testserver.Hang(), brings(50*ms, "2"), "[2]", "[0s 100ms]"},
		"that were there before":    {170 * ms, brings(160*ms, "1"), brings(10*ms, "2"), "[1]", "[0s 100ms]"},
		"of the only attempt":       {0, brings(50*ms, "1"), brings(0, "2"), "[1]", "[0s]"},
		"that only the second has":  {170 * ms, brings(200*ms, "1"), brings(10*ms, "2"), "[2]", "[0s 100ms]"},
		"after a failure":           {0, down().Delay(20 * ms), brings(50*ms, "2"), "[2]", "[0s 20ms]"},
		"and the first comes first": {0, brings(120*ms, "1"), brings(50*ms, "2"), "[1]", "[0s 100ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(func(h *policy.HedgeSpec) { h.MaxAttempts = 2 }), func(t *testing.T, s scene) {
				s.On(get, row.first, row.second)
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				time.Sleep(row.ask)
				md, err := stream.Header()
				if fmt.Sprint(md["who"]) != row.want || err != nil {
					t.Fatalf("headers %v, %v", md, err)
				}
				time.Sleep(100 * ms) // no other attempt is sent
				got, err := receive(stream)
				if fmt.Sprint(got) != row.want || err != io.EOF || s.sent() != row.sent {
					t.Errorf("%v, %v, sent %s", got, err, s.sent())
				}
			})
		})
	}
}

func TestHeaderOfAHedgedStreamThatFailsIsNil(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		if md, err := stream.Header(); md != nil || err != nil || s.Count(get) != 3 {
			t.Errorf("%v, %v after %d attempts", md, err, s.Count(get))
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v", err)
		}
	})
}

func TestACallThatIsCommittedAsItIsCancelledEndsOnce(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		for n := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			stream := s.open(t, ctx, bidiStream)
			send(t, stream, "x")
			time.Sleep(250 * ms) // there are three attempts
			done := make(chan bool)
			go func() { cancel(); close(done) }()
			stream.Context() // and no other call
			<-done
			synctest.Wait()
			if len(s.calls) != n+1 || s.retrier.Replayed() != 0 {
				t.Fatalf("%d calls of %d have ended, %d bytes kept", len(s.calls), n+1, s.retrier.Replayed())
			}
		}
	})
}

type panicsInRecv struct{ grpc.ClientStream }

func (panicsInRecv) RecvMsg(any) error { panic("inner") }

func TestAPanicInAnAttemptOfAHedgedStreamComesUpInTheApplication(t *testing.T) {
	for name, row := range map[string]struct {
		number  int // the attempt that panics
		opening bool
		wait    time.Duration // before the application receives
	}{
		"when the first is opened": {1, true, 0},
		"when a hedge is opened":   {2, true, 0},
		"in the first":             {1, false, 0},
		"in a hedge":               {2, false, 0},
		"before anybody receives":  {2, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			purse := &purse{grants: 10}
			play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.SendHeader(nil)).Then(testserver.Hang())) // RecvMsg follows the headers
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				n := 0
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						n++
						if n == row.number && row.opening {
							panic("inner")
						}
						stream, err := open(ctx, desc, cc, method, opts...)
						if n == row.number {
							stream = panicsInRecv{stream}
						}
						return stream, err
					}))...)
				defer func() {
					if got := recover(); got != "inner" || n != row.number {
						t.Errorf("recovered %v after %d attempts", got, n)
					}
					if purse.bad != 1 || purse.started != 1 || s.retrier.Replayed() != 0 {
						t.Errorf("the budget: %v; %d bytes kept", purse, s.retrier.Replayed())
					}
				}()
				stream, err := conn.NewStream(ctx, bidiStream, get)
				if err != nil {
					t.Fatal(err)
				}
				send(t, stream, "x")
				time.Sleep(row.wait)
				err = stream.RecvMsg(new(wrapperspb.StringValue))
				t.Error(err)
			}, interceptor.WithBudget("", purse), described(t))
		})
	}
}
