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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The connection's options may point to what all its calls share.
func TestTheOptionsOfAConnectionAreServedOnceAStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var header, again metadata.MD
		finished := 0
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultCallOptions(
			grpc.Header(&header), grpc.Header(&again), grpc.OnFinish(func(error) { finished++ })))...)
		for n := 1; n <= 2; n++ {
			s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")).Header(metadata.Pairs("call", fmt.Sprint(n))))
			stream := s.open(t, t.Context(), serverStream)
			send(t, stream, "x")
			_, _ = receive(stream)
			if got := fmt.Sprint(header["call"], again["call"], finished); got != fmt.Sprintf("[%d] [%d] %d", n, n, n) {
				t.Errorf("headers and ends of stream %d: %s", n, got)
			}
		}
	})
}

// token is credentials that are asked for anew each time.
type token struct{ asked int }

func (k *token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	k.asked++
	return map[string]string{"authorization": fmt.Sprint("token ", k.asked)}, nil
}

func (*token) RequireTransportSecurity() bool { return false }

func TestEveryAttemptOfAStreamAsksForCredentials(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream, grpc.PerRPCCredentials(new(token)))
		send(t, stream, "x")
		_, _ = receive(stream)
		for n, a := range s.Attempts() {
			if got := fmt.Sprint(a.Metadata["authorization"]); got != fmt.Sprintf("[token %d]", n+1) {
				t.Errorf("attempt %d carries %s", n+1, got)
			}
		}
		if s.Count(get) != 2 {
			t.Errorf("%d attempts", s.Count(get))
		}
	})
}

// CANCELLED is a server's word too, and what a proxy that goes away leaves.
func TestAStreamThatTheServerCancelledIsRetriedWhenThatIsListed(t *testing.T) {
	retry := plain()
	retry.Codes = policy.Codes(codes.Canceled)
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Canceled), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if got, _ := receive(stream); len(got) != 1 || s.Count(get) != 2 {
			t.Errorf("%v after %d attempts", got, s.Count(get))
		}
	})
}

func TestAMessageThatIsTooLargeForAStreamIsSentByNoAttempt(t *testing.T) {
	retry := plain()
	retry.Codes = policy.Codes(codes.ResourceExhausted, codes.Unavailable)
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxCallSendMsgSize(100))
		send(t, stream, "small")
		synctest.Wait()
		err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", 100)))
		if status.Code(err) != codes.ResourceExhausted || reasonOf(err) != policy.ReasonNonRetryable {
			t.Errorf("%v, %s", err, reasonOf(err))
		}
		synctest.Wait()
		if got := s.heard(0); s.Count(get) != 1 || fmt.Sprint(got) != "[small]" || s.retrier.Replayed() != 0 {
			t.Errorf("%d attempts, the first heard %v; %d bytes are kept", s.Count(get), got, s.retrier.Replayed())
		}
	})
}

func TestRetriesOfAStreamMayWaitForTheConnection(t *testing.T) {
	retry := plain()
	retry.Backoff.Initial, retry.Backoff.Multiplier, retry.WaitForReadyOnRetry = 10*ms, 1, new(true)
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("up again")))
		s.Down()
		time.AfterFunc(500*ms, s.Up)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream := s.open(t, ctx, serverStream)
		send(t, stream, "x")
		if got, err := receive(stream); len(got) != 1 || len(s.attempts) != 2 {
			t.Errorf("%v, %v after %d attempts; want the second to wait", got, err, len(s.attempts))
		}
	})
}

// A stream that only sends never learns of an answer, and would keep what it sends for ever.
func TestAStreamThatOnlySendsKeepsNoMoreThanItMay(t *testing.T) {
	const limit = 1000
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(limit))
		most := int64(0)
		for range 1000 {
			send(t, stream, "message")
			most = max(most, s.retrier.Replayed())
		}
		if most < limit/2 || most > limit || s.retrier.Replayed() != 0 {
			t.Errorf("%d bytes were kept and %d are; want up to %d and then none", most, s.retrier.Replayed(), limit)
		}
	})
}

// Without ServerStreams gRPC itself receives a second time: into the message that was received.
func TestASecondReplyToAClientStreamIsAnErrorAndNotRetried(t *testing.T) {
	retry := plain()
	retry.Codes = policy.Codes(codes.Internal)
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll(), say("a", "b")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "x")
		_ = stream.CloseSend()
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		if status.Code(err) != codes.Internal || reasonOf(err) != policy.ReasonNonRetryable || s.Count(get) != 1 {
			t.Errorf("%v, %s after %d attempts", err, reasonOf(err), s.Count(get))
		}
	})
}

// A call of one message each way may be made as a stream; its description is the caller's.
func TestAStreamOfOneMessageEachWayIsRetried(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), text("a"))
		desc := grpc.StreamDesc{StreamName: "GetOrder"}
		stream := s.open(t, t.Context(), &desc)
		send(t, stream, "x")
		_ = stream.CloseSend()
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "a" || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", m, err, s.Count(get))
		}
		if desc.StreamName != "GetOrder" || desc.ServerStreams || desc.ClientStreams {
			t.Errorf("the description has become %+v", desc)
		}
		if len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonSucceeded {
			t.Errorf("told of %+v", s.calls)
		}
	})
}
