// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

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
