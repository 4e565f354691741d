// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

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
