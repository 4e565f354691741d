// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// reader receives ahead of the application, and keeps to itself that the attempt has ended.
type reader struct {
	grpc.ClientStream

	end error
}

func (r *reader) SendMsg(m any) error {
	if r.end == nil {
		r.end = r.ClientStream.RecvMsg(new(wrapperspb.StringValue))
	}
	_ = r.ClientStream.SendMsg(m)
	return nil
}

func (r *reader) RecvMsg(m any) error {
	if r.end != nil {
		return r.end
	}
	return r.ClientStream.RecvMsg(m)
}

func TestAMessageThatDoesNotFitDoesNotCommitToAnAttemptThatIsKnownToHaveEnded(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return &reader{ClientStream: stream}
			}
			return stream
		})
		s.On(get, testserver.Play().Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
		send(t, stream, "a")
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

// While an attempt is sent what was sent before, what the application sends waits for that; it is not
// offered to the attempt before, again and again.
func TestAMessageThatIsSentDuringAReplayWaitsForIt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		sent := make([]int, 3)
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			return &spy{stream, func(any) {
				if sent[n]++; n == 2 && sent[n] == 1 {
					time.Sleep(5 * time.Second)
				}
			}}
		})
		s.On(get, failing(), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		time.AfterFunc(2*time.Second, func() {
			send(t, stream, "b")
			_ = stream.CloseSend()
		})
		if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF || fmt.Sprint(sent) != "[0 1 2]" {
			t.Errorf("%v, %v; attempts were sent %v messages, want [0 1 2]", got, err, sent)
		}
	})
}

// gRPC's generated code has it that the one request of a server stream is never the place to say that the
// stream is over; that of other streams is told to ask RecvMsg.
func TestSendingOnAStreamThatIsOverSaysWhatGRPCSays(t *testing.T) {
	for want, desc := range map[error]*grpc.StreamDesc{nil: serverStream, io.EOF: bidiStream} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play().Then(down()))
				stream := s.open(t, t.Context(), desc)
				if _, err := receive(stream); status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
					t.Fatal(err)
				}
				if err := stream.SendMsg(wrapperspb.String("a")); err != want {
					t.Errorf("%v; want %v", err, want)
				}
			})
		})
	}
}

// racer prepares every message beside sending it, and sends some in another goroutine.
type racer struct {
	grpc.ClientStream

	wg    sync.WaitGroup
	count int
}

func (r *racer) SendMsg(m any) error {
	r.wg.Wait() // gRPC allows one SendMsg at a time
	for range 4 {
		r.wg.Go(func() { _ = new(grpc.PreparedMsg).Encode(r.ClientStream, m) })
	}
	if r.count++; r.count%2 == 0 {
		return r.ClientStream.SendMsg(m)
	}
	r.wg.Go(func() { _ = r.ClientStream.SendMsg(m) })
	return nil
}

func (r *racer) CloseSend() error {
	r.wg.Wait()
	return r.ClientStream.CloseSend()
}

// In real time, since what it is about are moments.
func TestAMessageThatIsEncodedTwiceAtOnceIsKeptOnce(t *testing.T) {
	t.Parallel()
	retry := plain()
	retry.Backoff = policy.Backoff{Initial: time.Microsecond, Max: time.Microsecond, Multiplier: 1}
	s := scene{Server: testserver.Start(t, testserver.Keep(4)), retrier: mustNew(t, mustSet(t, config(retry)), quiet)}
	const n = 500
	for range 20 {
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &racer{ClientStream: stream}
		})
		s.On(get, testserver.Play(testserver.ReceiveAll()).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		for i := range n {
			send(t, stream, fmt.Sprint(i))
		}
		_ = stream.CloseSend()
		got, err := receive(stream)
		for i, text := range got {
			if text != fmt.Sprint(i) {
				t.Fatalf("message %d is %s", i, text)
			}
		}
		if len(got) != n || err != io.EOF {
			t.Fatalf("%d messages of %d, %v", len(got), n, err)
		}
	}
}
