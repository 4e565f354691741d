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
