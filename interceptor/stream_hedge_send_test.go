// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestWhatIsSentAfterAHedgeReachesEveryAttempt(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"client": clientStream, "bidi": bidiStream} {
		t.Run(name, func(t *testing.T) {
			var closes atomic.Int64
			play(t, hedged(), func(t *testing.T, s scene) {
				s = s.within(t, func(_ context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
					return countedClose{stream, &closes}
				})
				s.On(get, takes(time.Minute, "1"), takes(time.Second, "2"), takes(time.Minute, "3"))
				stream := s.open(t, t.Context(), desc)
				for _, text := range []string{"a", "b", "c", "d", "e"} { // at 0, 60, 120, 180 and 240 ms
					send(t, stream, text)
					time.Sleep(60 * ms)
				}
				_ = stream.CloseSend()
				got, err := receive(stream)
				if fmt.Sprint(got) != "[2]" || err != io.EOF {
					t.Errorf("%v, %v", got, err)
				}
				if got := fmt.Sprint(s.heardBy()); got != "[[a b c d e]. [a b c d e]. [a b c d e].]" || closes.Load() != 3 {
					t.Errorf("the attempts heard %s, with %d closes; want one for each of 3 attempts", got, closes.Load())
				}
			})
		})
	}
}

type countedClose struct {
	grpc.ClientStream

	n *atomic.Int64
}

func (c countedClose) CloseSend() error {
	c.n.Add(1)
	return c.ClientStream.CloseSend()
}

func TestWhatIsSentAfterTheAnswerReachesTheWinnerAlone(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Pause(time.Hour)), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		if got := s.retrier.Replayed(); got != 0 {
			t.Errorf("%d bytes are kept", got)
		}
		send(t, stream, "b", "c")
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[b c]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := fmt.Sprint(s.heardBy()[1]); got != "[a b c]." {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}

// The application may change a message when SendMsg has returned: many do.
func TestHedgesAreSentWhatAMessageWas(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(time.Second, "2"))
		stream := s.open(t, t.Context(), bidiStream)
		m := wrapperspb.String("a")
		for _, text := range []string{"a", "b", "c"} {
			m.Value = text
			if err := stream.SendMsg(m); err != nil {
				t.Fatal(err)
			}
			time.Sleep(75 * ms)
		}
		m.Value = "d"
		_ = stream.CloseSend()
		_, _ = receive(stream)
		if got := fmt.Sprint(s.heardBy()[1]); got != "[a b c]." {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}

// What the first attempt does not take waits for the hedge, and no longer.
func TestSendingDoesNotWaitForAnAttemptThatTakesNothing(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.Server = testserver.Start(t, testserver.ServerOptions(grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(1<<20)))
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		s.On(get, testserver.Play(testserver.Pause(time.Hour)), takes(0, "sum"))
		stream := s.open(t, t.Context(), clientStream)
		start, long := time.Now(), strings.Repeat("x", 20<<10)
		for range 12 { // more than the server's window and what gRPC queues, 64 KiB each
			send(t, stream, long)
		}
		_ = stream.CloseSend()
		if took := time.Since(start); took != 100*ms {
			t.Errorf("sending took %v", took)
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil || time.Since(start) != 100*ms {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if got := s.heard(1); len(got) != 12 || strings.Join(got, "") != strings.Repeat(long, 12) {
			t.Errorf("the second attempt heard %d messages", len(got))
		}
	})
}

func TestAHedgedStreamKeepsUpToItsLimitAndCommitsBeyond(t *testing.T) {
	for name, row := range map[string]struct {
		beyond int
		want   policy.Reason
		sent   string
	}{
		"at the limit": {0, "", "[0s 100ms 130ms]"},
		"beyond it":    {1, policy.ReasonCommitted, "[0s 100ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, down().Delay(130*ms), takes(time.Second, "sum"), testserver.Hang())
				// A message is its text, 2 bytes of protobuf before that, and gRPC's 5.
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(40))
				send(t, stream, strings.Repeat("x", 13))
				time.Sleep(110 * ms) // there are two attempts
				send(t, stream, strings.Repeat("y", 13+row.beyond))
				_ = stream.CloseSend()
				got, err := receive(stream)
				if reasonOf(err) != row.want || row.want == "" && fmt.Sprint(got) != "[sum]" || s.sent() != row.sent {
					t.Errorf("%v, %v (%s), sent %s", got, err, reasonOf(err), s.sent())
				}
				if want := fmt.Sprint(row.beyond); strings.Count(s.heardBy()[1], "y") != 13 && want == "0" {
					t.Errorf("the second attempt heard %s", s.heardBy()[1])
				}
				if got := s.retrier.Replayed(); got != 0 {
					t.Errorf("%d bytes are kept", got)
				}
			})
		})
	}
}

func TestAMessageThatCannotBeSentEndsAHedgedStream(t *testing.T) {
	for name, wait := range map[string]time.Duration{"with one attempt": 0, "with two": 150 * ms} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang())
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxCallSendMsgSize(10))
				send(t, stream, "a")
				time.Sleep(wait)
				start := time.Now()
				err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", 100)))
				if err == nil { // it was kept, and an attempt has found that it cannot be sent
					_, err = receive(stream)
				}
				if status.Code(err) != codes.ResourceExhausted || time.Since(start) != 0 {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				s.overOnce(t, codes.ResourceExhausted, 1+int(wait/(150*ms)))
			})
		})
	}
}

func TestAStreamThatIsSentTwoKindsOfMessagesHedgesThemAll(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(time.Second, "2"))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if err := stream.SendMsg(wrapperspb.Bytes([]byte("b"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * ms)
		if err := stream.SendMsg(wrapperspb.Bytes([]byte("c"))); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		_, _ = receive(stream)
		if got := fmt.Sprint(s.heardBy()[1]); got != "[a b c]." {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}
