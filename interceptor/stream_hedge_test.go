// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// kinds are the three kinds of streams.
func kinds() map[string]*grpc.StreamDesc {
	return map[string]*grpc.StreamDesc{"server": serverStream, "client": clientStream, "bidi": bidiStream}
}

// takes is an attempt that receives all, and answers after a while.
func takes(after time.Duration, answer string) testserver.Step {
	return testserver.Play(testserver.ReceiveAll(), testserver.Pause(after), say(answer))
}

// whole makes a stream of one message each way, and returns what it brings, how it ends, and after how long.
func (s scene) whole(t *testing.T, desc *grpc.StreamDesc, opts ...grpc.CallOption) (got string, took time.Duration, err error) {
	t.Helper()
	start := time.Now()
	stream := s.open(t, t.Context(), desc, opts...)
	send(t, stream, "x")
	_ = stream.CloseSend()
	texts, err := receive(stream)
	return fmt.Sprint(texts), time.Since(start), err
}

func TestHedgesOfAStreamAreSentEachDelayUntilOneIsAnswered(t *testing.T) {
	for name, desc := range kinds() {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang(), testserver.Hang(), takes(50*ms, "third"))
				got, took, err := s.whole(t, desc)
				if got != "[third]" || err != io.EOF || took != 250*ms {
					t.Errorf("%s, %v after %v", got, err, took)
				}
				if s.sent() != "[0s 100ms 200ms]" || len(s.attempts) != 3 || s.ends() != "[1 cancelled 2 cancelled 3 won]" {
					t.Errorf("sent %s; %s", s.sent(), s.ends())
				}
				s.overOnce(t, codes.OK, 3)
			})
		})
	}
}

func TestAStreamThatIsAnsweredBeforeTheDelayIsNotHedged(t *testing.T) {
	for name, desc := range kinds() {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, takes(99*ms, "first"))
				got, _, err := s.whole(t, desc)
				if got != "[first]" || err != io.EOF || s.sent() != "[0s]" || s.ends() != "[1 ]" {
					t.Errorf("%s, %v, sent %s; %s", got, err, s.sent(), s.ends())
				}
			})
		})
	}
}

// A stream goes on for as long as it likes once its first message is there.
func TestAStreamIsNotHedgedAfterItsFirstMessage(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Pause(50*ms), say("a"), testserver.Pause(time.Minute), say("b")))
		got, _, err := s.whole(t, serverStream)
		if got != "[a b]" || err != io.EOF || s.sent() != "[0s]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestANonFatalFailureSendsTheNextHedgeOfAStreamAtOnce(t *testing.T) {
	for name, desc := range kinds() {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang(), down().Delay(30*ms), takes(500*ms, "third"))
				got, _, err := s.whole(t, desc)
				if got != "[third]" || err != io.EOF || s.sent() != "[0s 100ms 130ms]" {
					t.Errorf("%s, %v, sent %s", got, err, s.sent())
				}
			})
		})
	}
}

// The application of this stream does nothing but wait: a failure is found all the same.
func TestAFailureThatNobodyAskedForSendsTheNextHedge(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down().Delay(30*ms), down().Delay(20*ms), takes(0, "third"))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		time.Sleep(time.Second)
		if s.sent() != "[0s 30ms 50ms]" {
			t.Errorf("sent %s", s.sent())
		}
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[third]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// The first attempt brings headers, which nobody has asked for, and loses.
func TestOnlyTheWinnersMetadataReachesTheApplicationOfAStream(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		who := func(name string) testserver.Move { return testserver.SendHeader(metadata.Pairs("who", name)) }
		s.On(get, testserver.Play(who("first"), testserver.Pause(time.Hour)).Trailer(metadata.Pairs("who", "first")),
			testserver.Play(who("second"), testserver.Receive(1), say("second")).Trailer(metadata.Pairs("who", "second")))
		var (
			header, trailer metadata.MD
			from            peer.Peer
			finished        []error
		)
		stream := s.open(t, t.Context(), serverStream, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		send(t, stream, "x")
		got, err := receive(stream)
		seen, _ := stream.Header()
		all := fmt.Sprint(got, header["who"], seen["who"], trailer["who"], stream.Trailer()["who"], finished)
		if all != "[second] [second] [second] [second] [second] [<nil>]" || err != io.EOF || from.Addr == nil {
			t.Errorf("%s, %v, peer %v", all, err, from)
		}
	})
}

func TestAnUnsafeStreamIsNotHedged(t *testing.T) {
	c := hedged()
	c.Methods[0].Idempotency = policy.IdempotencyNone
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, takes(time.Second, "first"))
		if got, _, err := s.whole(t, bidiStream); got != "[first]" || err != io.EOF || s.sent() != "[0s]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
	})
}

func TestServerIsToldHowManyHedgesOfAStreamWentBefore(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Hang(), takes(0, "third"))
		_, _, _ = s.whole(t, bidiStream)
		synctest.Wait()
		for i, a := range s.Attempts() {
			want := []string{"[]", "[1]", "[2]"}[i]
			if got := fmt.Sprint(a.Metadata.Get("grpc-previous-rpc-attempts")); got != want {
				t.Errorf("attempt %d: %s; want %s", i+1, got, want)
			}
		}
	})
}

func TestAllHedgesOfAStreamAreSentAtOnceWithoutADelay(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.Delay = 0 }), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Hang(), takes(0, "third"))
		if got, _, err := s.whole(t, clientStream); got != "[third]" || err != io.EOF || s.sent() != "[0s 0s 0s]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
	})
}

// within gives the scene a connection on which inner sees each attempt n of a stream, from 1.
func (s scene) within(t *testing.T, inner func(ctx context.Context, n int, stream grpc.ClientStream) grpc.ClientStream) scene {
	t.Helper()
	n := 0
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			n++
			return inner(ctx, n, stream), nil
		}))...)
	return s
}

// slow is an attempt whose messages wait for a gate before they are sent.
type slow struct {
	grpc.ClientStream

	gate chan struct{}
	err  error
}

func (s slow) SendMsg(m any) error {
	<-s.gate
	if s.err != nil {
		return s.err
	}
	return s.ClientStream.SendMsg(m)
}

// failing takes a message and fails.
func failing() testserver.Step { return testserver.Play(testserver.Receive(1)).Then(down()) }

func TestAReplayThatIsOvertakenKeepsItsMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		gate := make(chan struct{})
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 2 {
				return slow{ClientStream: stream, gate: gate}
			}
			return stream
		})
		s.On(get, failing(), testserver.Play().Then(down()), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, strings.Repeat("x", 10<<10)) // large enough to be taken from a pool
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		close(gate) // the second attempt sends what the third was answered for
		synctest.Wait()
		if got := s.Count(get); got != 3 || s.retrier.Replayed() != 0 {
			t.Errorf("%d attempts, %d bytes kept; want 3 and none", got, s.retrier.Replayed())
		}
	})
}

func TestASendThatFailsWhenAnotherAttemptHasTakenItsPlaceIsForgotten(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		gate := make(chan struct{})
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return slow{stream, gate, status.Error(codes.PermissionDenied, "no")}
			}
			return stream
		})
		s.On(get, testserver.Play(testserver.Pause(time.Second)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		time.AfterFunc(time.Minute, func() { close(gate) }) // long after the first attempt
		sent := make(chan error, 1)
		go func() { sent <- stream.SendMsg(wrapperspb.String("a")) }()
		synctest.Wait()
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "a" {
			t.Fatalf("%v, %v; want what the second attempt was sent", m, err)
		}
		if err := <-sent; err != nil {
			t.Errorf("SendMsg: %v; the second attempt has sent it", err)
		}
		send(t, stream, "b")
		_ = stream.CloseSend()
		if got, err := receive(stream); len(got) != 1 || err != io.EOF {
			t.Errorf("%v, %v; want [b]", got, err)
		}
	})
}

func TestAReplayThatFailsOnThisSideEndsTheCall(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		gate := make(chan struct{})
		close(gate)
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 2 {
				return slow{stream, gate, status.Error(codes.PermissionDenied, "no")}
			}
			return stream
		})
		s.On(get, failing(), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		time.Sleep(time.Second)
		_ = stream.SendMsg(wrapperspb.String("b"))
		_ = stream.CloseSend()
		if got, err := receive(stream); len(got) > 0 || status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v, %v; want the error of the replay", got, err)
		}
	})
}

func TestTheTrailerIsThatOfTheLastAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1)).Then(down().Trailer(metadata.Pairs("number", "1"))))
		var trailer metadata.MD
		stream := s.open(t, t.Context(), bidiStream, grpc.Trailer(&trailer))
		send(t, stream, "a")
		synctest.Wait()
		s.Down() // what follows is not sent
		_, err := receive(stream)
		if s.Count(get) != 1 || status.Code(err) != codes.Unavailable {
			t.Fatalf("%d attempts, %v", s.Count(get), err)
		}
		if got := stream.Trailer(); len(got["number"])+len(trailer["number"]) > 0 {
			t.Errorf("trailers %v and %v of the first attempt; the error is the last one's: %v", got, trailer, err)
		}
	})
}

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
