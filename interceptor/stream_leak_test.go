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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

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
func TestStreamLeak_Hedged(t *testing.T) {
	const batch, others = 100, 9
	streams := 10_000
	if testing.Short() {
		streams = 1000
	}
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
		if calls.Load() != int64(streams) || attempts.Load() != 0 || beside.Load() < int64(streams)/10 {
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
		time.AfterFunc(time.Duration(1+rand.IntN(5))*ms, cancel) // not 0: two such timers at once crash Go 1.26's race detector in a bubble
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

// life is what an application does with a stream before it forgets it.
type life struct {
	name  string
	desc  *grpc.StreamDesc
	steps []testserver.Step
	live  func(t *testing.T, stream grpc.ClientStream)
}

func lives() []life {
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

func TestStreamLeak_Forgotten(t *testing.T) {
	// The runtime and gRPC may start a few goroutines of their own meanwhile; one left by every
	// thousandth stream would be more.
	const batch, others = 250, 9
	streams := 10_000
	if testing.Short() {
		streams = 1000
	}
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
		if calls.Load() != int64(streams) || r.Replayed() != 0 || runtime.NumGoroutine() > goroutines+others {
			t.Errorf("%d calls of %d ended, %d bytes kept, %d goroutines; want no more than %d",
				calls.Load(), streams, r.Replayed(), runtime.NumGoroutine(), goroutines+others)
		}
	})
}

// steps are the attempts for the server; the last is written out as often as a call may reach it, so
// that each of its attempts has messages of its own.
func steps(attempts []attemptScript) (list []testserver.Step) {
	for n := 1; n <= 5; n++ {
		list = append(list, attempts[min(n, len(attempts))-1].step(n))
	}
	return list
}
