// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
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

// heardBy is what the server received in every attempt.
func (s scene) heardBy() (all []string) {
	synctest.Wait()
	for n, a := range s.Attempts() {
		heard := fmt.Sprint(s.heard(n))
		if a.HalfClosed {
			heard += "."
		}
		all = append(all, heard)
	}
	return all
}

func TestAReplayGrowsWithWhatIsSentBetweenFailures(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1)).Then(down()),
			testserver.Play(testserver.Receive(2)).Then(down()),
			testserver.Play(testserver.Receive(3)).Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("a", "b", "c", "d")))
		stream := s.open(t, t.Context(), bidiStream)
		for _, text := range []string{"a", "b", "c", "d"} {
			send(t, stream, text)
			time.Sleep(time.Second)
		}
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b c d]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := fmt.Sprint(s.heardBy()); got != "[[a] [a b] [a b c] [a b c d].]" {
			t.Errorf("the attempts heard %s", got)
		}
		if s.waits() != "[1.1s 1.2s 1.4s]" { // each failure is found when the next message is sent
			t.Errorf("waits %s", s.waits())
		}
	})
}

func TestTheHalfCloseIsReplayedAfterAllMessages(t *testing.T) {
	closed := 0
	counting := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return &closeCounter{stream, &closed}, err
	}
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(counting))...)
		s.On(get,
			testserver.Play(testserver.ReceiveAll()).Then(down()),
			testserver.Play(testserver.Receive(1)).Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream, err := conn.NewStream(t.Context(), clientStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "a", "b")
		_ = stream.CloseSend()
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		all := s.heardBy()
		if all[0] != "[a b]." || all[2] != "[a b]." || closed != 3 {
			t.Errorf("the attempts heard %s, with %d closes; want one for each of 3 attempts", all, closed)
		}
	})
}

type closeCounter struct {
	grpc.ClientStream

	n *int
}

func (c *closeCounter) CloseSend() error {
	*c.n++
	return c.ClientStream.CloseSend()
}

func TestAStreamThatHasSentNothingIsRetried(t *testing.T) {
	for name, row := range map[string]struct {
		move testserver.Move
		want string
	}{
		"and stays open": {testserver.Pause(time.Second), "[[] []]"},
		"and is closed":  {testserver.ReceiveAll(), "[[]. [].]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(row.move).Then(down()), testserver.Play(row.move, say("a")))
				stream := s.open(t, t.Context(), bidiStream)
				if name == "and is closed" {
					_ = stream.CloseSend()
				}
				if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
					t.Errorf("%v, %v", got, err)
				}
				if got := fmt.Sprint(s.heardBy()); got != row.want {
					t.Errorf("the attempts heard %s; want %s", got, row.want)
				}
			})
		})
	}
}

func TestManyAnswersFollowARetry(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var many []string
		for n := range 1000 {
			many = append(many, fmt.Sprint(n))
		}
		s.On(get, down().Times(3), testserver.Play(testserver.Receive(1), say(many...)))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != fmt.Sprint(many) || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestHeaderFirstWaitsThroughAllAttempts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		start := time.Now()
		md, err := stream.Header()
		if md != nil || err != nil || s.Count(get) != 4 || time.Since(start) != 700*ms {
			t.Errorf("%v, %v after %d attempts and %v; want no headers after 4 and 700 ms", md, err, s.Count(get), time.Since(start))
		}
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	})
}

func TestAnAnswerThatCrossesTheTimeoutOfItsAttemptLosesNothing(t *testing.T) {
	for _, at := range []time.Duration{999 * ms, 1000 * ms, 1050 * ms, 1099 * ms, 1100 * ms, 1101 * ms} {
		t.Run(at.String(), func(t *testing.T) {
			play(t, config(hasty()), func(t *testing.T, s scene) {
				s.On(get,
					testserver.Play(testserver.Receive(1), testserver.Pause(at), say("1a"), testserver.Pause(time.Minute), say("1b")),
					testserver.Play(testserver.Receive(1), say("2a", "2b")))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				got, err := receive(stream)
				first, second := "[1a 1b] 1", "[2a 2b] 2"
				synctest.Wait()
				now := fmt.Sprint(got, " ", s.Count(get))
				if err != io.EOF || now != first && now != second || at < 1100*ms && now != first || at > 1100*ms && now != second {
					t.Errorf("%s, %v", now, err)
				}
			})
		})
	}
}
