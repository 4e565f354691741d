// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
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
