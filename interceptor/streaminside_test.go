// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// inside dials with an interceptor inside the Retrier's: it wraps the stream of the n-th attempt, from 1.
func (s scene) inside(t *testing.T, wrap func(n int, stream grpc.ClientStream) grpc.ClientStream) *grpc.ClientConn {
	t.Helper()
	n := 0
	return s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			n++
			return wrap(n, stream), nil
		}))...)
}

// spy is a stream that has something done before each message is sent.
type spy struct {
	grpc.ClientStream

	send func(m any)
}

func (s *spy) SendMsg(m any) error {
	s.send(m)
	return s.ClientStream.SendMsg(m)
}

func TestAnInterceptorInsideSeesTheApplicationsMessageOnTheFirstAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var seen []any
		conn := s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &spy{stream, func(m any) { seen = append(seen, m) }}
		})
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream, err := conn.NewStream(t.Context(), serverStream, get)
		if err != nil {
			t.Fatal(err)
		}
		m := wrapperspb.String("x")
		if err := stream.SendMsg(m); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || len(seen) != 1 || seen[0] != m {
			t.Errorf("%v, %v; seen %v", got, err, seen)
		}
	})
}

// An interceptor may change what is sent, in the message itself or by sending another one. What it
// changes in place of the first attempt is lost on those that follow, which send what the
// application sent.
func TestAMessageThatAnInterceptorPutsInPlaceIsTheOneSent(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return &signer{stream} })
		s.On(get, testserver.Play(testserver.EchoAll()))
		stream, err := conn.NewStream(t.Context(), bidiStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[x, signed]" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

type signer struct{ grpc.ClientStream }

func (s *signer) SendMsg(m any) error {
	text, ok := m.(*wrapperspb.StringValue)
	if !ok {
		return s.ClientStream.SendMsg(m)
	}
	return s.ClientStream.SendMsg(wrapperspb.String(text.GetValue() + ", signed"))
}

// The first attempt of a call can end while its message is on its way through slow interceptors.
func TestAReplayThatIsStuckInsideHarmsNeitherTheNextNorTheEnd(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n != 2 {
				return stream
			}
			return &spy{stream, func(any) { time.Sleep(10 * time.Second) }}
		})
		s.On(get,
			testserver.Play(testserver.Receive(2)).Then(down()),
			testserver.Play().Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream, err := conn.NewStream(t.Context(), clientStream, get)
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", 40<<10) // in gRPC's own buffers
		send(t, stream, long, long)
		_ = stream.CloseSend()
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "sum" {
			t.Errorf("%v, %v", m, err)
		}
		if got := s.heard(2); len(got) != 2 || got[0] != long || got[1] != long {
			t.Errorf("the third attempt heard %d messages", len(got))
		}
		time.Sleep(time.Minute)
		if s.retrier.Replayed() != 0 {
			t.Errorf("%d bytes are kept", s.retrier.Replayed())
		}
	})
}

// A stream can end in the moment between its opening and its first use.
func TestAStreamThatIsCancelledWhileItIsOpenedIsReleased(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			synctest.Wait()
			cancel()
			synctest.Wait()
			return stream
		})
		s.On(get, testserver.Hang())
		if _, err := conn.NewStream(ctx, bidiStream, get); err != nil && status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		s.overOnce(t, codes.Canceled, 1)
	})
}
