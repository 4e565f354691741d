// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
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

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestHeaderWaitsForTheAttemptAfterOneThatIsGivenUp(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Play(testserver.Receive(1), say("a")).Header(metadata.Pairs("from", "2")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		md, err := stream.Header()
		if fmt.Sprint(md["from"]) != "[2]" || err != nil || s.waits() != "[1.1s]" {
			t.Errorf("%v, %v, waits %s", md["from"], err, s.waits())
		}
	})
}

func TestASendThatIsBlockedGoesOnWithTheNextAttempt(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.Server = testserver.Start(t, testserver.ServerOptions(grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(1<<20)))
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		s.On(get, testserver.Play(testserver.Pause(time.Hour)), testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream := s.open(t, t.Context(), clientStream)
		start := time.Now()
		long := strings.Repeat("x", 20<<10)
		for range 10 { // more than the server's window and what gRPC queues, 64 KiB each
			send(t, stream, long)
		}
		if time.Since(start) != 1100*ms {
			t.Errorf("sending took %v; want it blocked until the first attempt is given up", time.Since(start))
		}
		_ = stream.CloseSend()
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Error(err)
		}
		if got := s.heard(1); len(got) != 10 || strings.Join(got, "") != strings.Repeat(long, 10) {
			t.Errorf("the second attempt heard %d messages", len(got))
		}
	})
}

func TestAMessageOfAnAttemptThatWasGivenUpIsNotMixedWithThoseOfTheNext(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1), say("of the first"), testserver.Pause(time.Hour)),
			testserver.Play(testserver.Receive(2), say("of the second")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		time.Sleep(1500 * ms) // nobody receives the message in time
		send(t, stream, "y")
		if got, err := receive(stream); fmt.Sprint(got) != "[of the second]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestAStreamEndsWithItsDeadlineThoughNobodyReceives(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		time.Sleep(2 * time.Second)
		s.overOnce(t, codes.DeadlineExceeded, 1)
		if s.calls[0].Elapsed != time.Second {
			t.Errorf("after %v; want 1s", s.calls[0].Elapsed)
		}
	})
}

func TestThePolicysTimeoutBoundsAWholeStream(t *testing.T) {
	retry := plain()
	c := config(retry)
	for i := range c.Methods {
		c.Methods[i].Timeout = time.Second
	}
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, down().Times(2), testserver.Play(testserver.Receive(1), say("a"), testserver.Pause(time.Hour)))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		start := time.Now()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a]" || status.Code(err) != codes.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("%v, %v after %v", got, err, time.Since(start))
		}
	})
}

// A message and the end of the call can meet: then one goroutine ends the call while another one has
// a message in its hands.
func TestAMessageThatMeetsTheEndOfItsCallIsDeliveredAndTheCallEndsOnce(t *testing.T) {
	slow := interceptor.WithObserver(interceptor.Observer{
		Attempt: func(context.Context, interceptor.AttemptEvent) { time.Sleep(time.Second) },
	})
	play(t, config(plain()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			return &lateReceiver{stream, func() { cancel(); time.Sleep(500 * ms) }}
		})
		s.On(get, testserver.Play(testserver.Receive(1), say("a"), testserver.Pause(time.Hour)))
		stream, err := conn.NewStream(ctx, bidiStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a]" || status.Code(err) != codes.Canceled || reasonOf(err) == policy.ReasonSucceeded {
			t.Errorf("%v, %v", got, err)
		}
		s.overOnce(t, codes.Canceled, 1)
	}, slow)
}

// lateReceiver has something done between a message and its delivery.
type lateReceiver struct {
	grpc.ClientStream

	then func()
}

func (l *lateReceiver) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	l.then()
	return err
}

func TestPreparingAMessageBesideASendIsNoRace(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream := s.open(t, t.Context(), clientStream)
		done := make(chan error)
		go func() { // gRPC lets messages be prepared in any goroutine
			var err error
			for range 100 {
				if e := new(grpc.PreparedMsg).Encode(stream, wrapperspb.String("prepared")); e != nil {
					err = e
				}
			}
			done <- err
		}()
		for range 100 {
			send(t, stream, "x")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = stream.CloseSend()
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := len(s.heard(0)); got != 100 {
			t.Errorf("the server heard %d messages", got)
		}
	})
}
