// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// TestGRPCsRulesReleaseAStream checks each of the four ways by which gRPC lets an application release
// a stream (grpc.ClientConn.NewStream).
func TestGRPCsRulesReleaseAStream(t *testing.T) {
	hangs := []testserver.Step{failing(), testserver.Hang()}
	fails := []testserver.Step{failing(), down()}
	tooLarge := wrapperspb.String(string(make([]byte, 2000)))
	for name, rule := range map[string]struct {
		steps   []testserver.Step
		release func(s scene, stream grpc.ClientStream, cancel context.CancelFunc)
	}{
		"the connection is closed":        {hangs, func(s scene, _ grpc.ClientStream, _ context.CancelFunc) { _ = s.conn.Close() }},
		"its context is cancelled":        {hangs, func(_ scene, _ grpc.ClientStream, cancel context.CancelFunc) { cancel() }},
		"RecvMsg returns an error":        {fails, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = receive(stream) }},
		"RecvMsg returns its end":         {[]testserver.Step{failing(), testserver.Play(testserver.Receive(2))}, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = receive(stream) }},
		"Header finds the failure":        {fails, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = stream.Header() }},
		"SendMsg cannot send":             {hangs, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _ = stream.SendMsg(tooLarge) }},
		"SendMsg gets what is no message": {hangs, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _ = stream.SendMsg(7) }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				var attempts []context.Context
				s = s.within(t, func(ctx context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
					attempts = append(attempts, ctx)
					return stream
				})
				s.On(get, rule.steps...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream := s.open(t, ctx, bidiStream, grpc.MaxCallSendMsgSize(1000))
				send(t, stream, "a")
				time.Sleep(time.Second) // the first attempt has failed
				send(t, stream, "b")
				synctest.Wait()
				if s.retrier.Replayed() == 0 || len(s.calls) > 0 || attempts[1].Err() != nil {
					t.Fatalf("%d bytes kept, calls %+v; the stream should live", s.retrier.Replayed(), s.calls)
				}
				if attempts[0].Err() == nil {
					t.Error("the first attempt lives on beside the second")
				}
				rule.release(s, stream, cancel)
				synctest.Wait()
				if len(s.calls) != 1 || s.retrier.Replayed() != 0 {
					t.Errorf("calls %+v, %d bytes kept", s.calls, s.retrier.Replayed())
				}
				for i, ctx := range attempts {
					if ctx.Err() == nil {
						t.Errorf("attempt %d of %d lives on", i+1, len(attempts))
					}
				}
			})
		})
	}
}

func TestAStreamThatIsCancelledWhileItsNextAttemptOpensIsReleased(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 2 {
				cancel()
				synctest.Wait() // gRPC has ended the attempt before anybody has it
			}
			return stream
		})
		s.On(get, failing(), testserver.Hang())
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "a")
		time.Sleep(time.Second)
		_ = stream.SendMsg(wrapperspb.String("b")) // finds the failure; nobody calls after it
		synctest.Wait()
		if len(s.calls) != 1 || s.calls[0].Code != codes.Canceled || s.retrier.Replayed() != 0 {
			t.Errorf("calls %+v, %d bytes kept; want one that was cancelled", s.calls, s.retrier.Replayed())
		}
	})
}

// TestAMessageThatMeetsACancelIsNoRace is for the race detector: the end of a stream is found while
// the message that would commit it is taken in.
func TestAMessageThatMeetsACancelIsNoRace(t *testing.T) {
	t.Parallel()
	s := scene{Server: testserver.Start(t, testserver.Keep(1)), journal: new(journal)}
	s.retrier = mustNew(t, mustSet(t, config(plain())), withJournal(s.journal))
	s.conn = s.Dial(t, s.retrier.DialOptions()...)
	s.On(get, testserver.Play(testserver.EchoAll()))
	const streams = 500
	for range streams {
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "a")
		go cancel()
		got, err := receive(stream)
		if len(got) > 1 || err == nil {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if n := s.retrier.Replayed(); n != 0 {
		t.Errorf("%d bytes kept", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != streams {
		t.Errorf("told of the end of %d streams; want %d", len(s.calls), streams)
	}
}
