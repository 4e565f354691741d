// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// life is what an application does with a stream before it forgets it.
type life struct {
	name  string
	desc  *grpc.StreamDesc
	steps []testserver.Step
	live  func(t *testing.T, stream grpc.ClientStream)
}

func lives() []life { //nolint:funlen // a list
	hang := testserver.Hang()
	nothing := func(*testing.T, grpc.ClientStream) {}
	sends := func(t *testing.T, stream grpc.ClientStream) { t.Helper(); send(t, stream, "a") }
	toTheEnd := func(t *testing.T, stream grpc.ClientStream) {
		t.Helper()
		send(t, stream, "a")
		_ = stream.CloseSend()
		_, _ = receive(stream)
	}
	return []life{
		{"nothing sent", bidiStream, []testserver.Step{hang}, nothing},
		{"sent", clientStream, []testserver.Step{hang}, sends},
		{"sent to a server stream", serverStream, []testserver.Step{hang}, sends},
		{"sent to a failure", clientStream, []testserver.Step{down()}, sends},
		{"replayed", bidiStream, []testserver.Step{failing(), hang}, func(t *testing.T, stream grpc.ClientStream) {
			t.Helper()
			send(t, stream, "a")
			synctest.Wait()
			send(t, stream, "b") // finds the failure
		}},
		{"in the backoff", bidiStream, []testserver.Step{down().Pushback("250000")}, func(t *testing.T, stream grpc.ClientStream) {
			t.Helper()
			send(t, stream, "a")
			go func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }()
			synctest.Wait()
		}},
		{"committed", bidiStream, []testserver.Step{testserver.Play(testserver.Echo(1)).Then(hang)}, func(t *testing.T, stream grpc.ClientStream) {
			t.Helper()
			send(t, stream, "a")
			_ = stream.RecvMsg(new(wrapperspb.StringValue))
			send(t, stream, "b")
		}},
		{"a message left unread", bidiStream, []testserver.Step{testserver.Play(testserver.Echo(1))}, func(t *testing.T, stream grpc.ClientStream) {
			t.Helper()
			send(t, stream, "a")
			synctest.Wait()
			_ = stream.SendMsg(wrapperspb.String("b"))
		}},
		{"failed", serverStream, []testserver.Step{down()}, toTheEnd},
		{"finished", bidiStream, []testserver.Step{failing(), testserver.Play(testserver.EchoAll())}, toTheEnd},
	}
}

func TestForgottenStreamsLeaveNothingBehind(t *testing.T) {
	// The runtime and gRPC may start a few goroutines of their own meanwhile; one left by every
	// thousandth stream would be more.
	const streams, batch, others = 10_000, 250, 9
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := mustNew(t, mustSet(t, config(plain())), interceptor.WithObserver(interceptor.Observer{
			Call: func(context.Context, interceptor.CallEvent) { calls.Add(1) },
		}), quiet)
		s := scene{Server: testserver.Start(t, testserver.NoRecord()), retrier: r}
		s.conn = s.Dial(t, r.DialOptions()...)
		goroutines := 0
		for n := 0; n < streams; n += batch {
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			for i := range batch {
				n := i % len(lives())
				l, method := lives()[n], fmt.Sprint(get, n)
				s.On(method, l.steps...)
				stream, err := s.conn.NewStream(ctx, l.desc, method, interceptor.Idempotent())
				if err != nil {
					t.Fatalf("%s: %v", l.name, err)
				}
				l.live(t, stream)
			}
			if r.Replayed() == 0 || runtime.NumGoroutine() < before+batch/2 {
				t.Fatal("nothing is kept while streams live: the test tests nothing")
			}
			cancel() // and no other call
			synctest.Wait()
			if n == 0 {
				goroutines = runtime.NumGoroutine() // those of one connection
			}
		}
		if calls.Load() != streams || r.Replayed() != 0 || runtime.NumGoroutine() > goroutines+others {
			t.Errorf("%d calls of %d ended, %d bytes kept, %d goroutines; want no more than %d",
				calls.Load(), streams, r.Replayed(), runtime.NumGoroutine(), goroutines+others)
		}
	})
}

// anyEnd is an attempt that answers with what it was sent, fails or hangs, sooner or later.
func anyEnd() testserver.Step {
	return testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
		wait := testserver.Pause(time.Duration(rand.IntN(8)) * ms)
		switch rand.IntN(8) {
		case 0, 1:
			return testserver.Play(wait).Then(down())
		case 2:
			return testserver.Play(testserver.Receive(1), wait).Then(testserver.Hang())
		case 3:
			return testserver.Play(testserver.SendHeader(nil), wait, testserver.Echo(1), wait).Then(down())
		case 4:
			return testserver.Play(wait).Then(testserver.Fail(codes.NotFound))
		default:
			return testserver.Play(testserver.Receive(1), wait, testserver.EchoAll(), wait)
		}
	})
}

// ten thousand streams are sent, seen and left in every way, while their attempts end in every order.
func TestHedgedStreamsThatEndInEveryOrderLeaveNothingBehind(t *testing.T) {
	const streams, batch, others = 10_000, 100, 9
	synctest.Test(t, func(t *testing.T) {
		var calls, attempts, beside atomic.Int64
		c := hedged(func(h *policy.HedgeSpec) { h.Delay = 2 * ms })
		r := mustNew(t, mustSet(t, c), quiet, interceptor.WithObserver(interceptor.Observer{
			Call: func(_ context.Context, e interceptor.CallEvent) { calls.Add(1); attempts.Add(-int64(e.Attempts)) },
			Attempt: func(_ context.Context, e interceptor.AttemptEvent) {
				attempts.Add(1)
				if e.Place != interceptor.PlaceAlone {
					beside.Add(1)
				}
			},
		}))
		srv := testserver.Start(t, testserver.NoRecord())
		srv.On(get, anyEnd())
		conn := srv.Dial(t, r.DialOptions()...)
		goroutines := 0
		for n := 0; n < streams; n += batch {
			var wg sync.WaitGroup
			for i := range batch {
				wg.Go(func() { leave(t, conn, n+i) })
			}
			wg.Wait()
			synctest.Wait()
			if n == 0 {
				goroutines = runtime.NumGoroutine() // those of one connection
			}
		}
		if calls.Load() != streams || attempts.Load() != 0 || beside.Load() < streams {
			t.Errorf("%d calls of %d ended, %d attempts too many, %d ran beside others", calls.Load(), streams, attempts.Load(), beside.Load())
		}
		if r.Replayed() != 0 || runtime.NumGoroutine() > goroutines+others {
			t.Errorf("%d bytes kept, %d goroutines; want no more than %d", r.Replayed(), runtime.NumGoroutine(), goroutines+others)
		}
	})
}

// leave makes a stream, and leaves it in the n-th of many ways. What it brings must be what was sent.
func leave(t *testing.T, conn *grpc.ClientConn, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, []*grpc.StreamDesc{bidiStream, clientStream, serverStream}[n%3], get)
	if err != nil {
		return
	}
	request := new(wrapperspb.StringValue)
	for i := range 1 + n%3%2*3 { // one, or four of a client stream
		request.Value = fmt.Sprintf("%d/%d", n, i) // what was sent before must not be looked at any more
		_ = stream.SendMsg(request)
		time.Sleep(time.Duration(rand.IntN(3)) * ms)
	}
	switch n % 7 {
	case 0:
		stream.Context()
	case 1:
		_, _ = stream.Header()
	case 2:
		return // and nobody receives
	case 3:
		time.AfterFunc(time.Duration(rand.IntN(5))*ms, cancel)
	}
	_ = stream.CloseSend()
	skipped := 0
	for i := 0; ; i++ {
		reply := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(reply); err != nil {
			if err == io.EOF && n%3 == 1 && i != 1 {
				t.Errorf("stream %d: success after %d replies", n, i)
			}
			return
		}
		if i == 0 && reply.GetValue() == fmt.Sprintf("%d/1", n) {
			skipped = 1 // the attempt had received one before it began to echo
		}
		if got := reply.GetValue(); got != fmt.Sprintf("%d/%d", n, i+skipped) {
			t.Errorf("stream %d: message %d is %q", n, i, got)
		}
	}
}

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
