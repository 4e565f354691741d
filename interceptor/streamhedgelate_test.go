// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The message of the first attempt is held up, by an interceptor further in, until the second has won.
func TestAMessageThatComesAfterAnotherAttemptHasWonIsDropped(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return &lateReceiver{stream, func() { time.Sleep(time.Second) }}
			}
			return stream
		})
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Pause(50*ms), say("1", "1", "1"), testserver.Pause(time.Hour)),
			testserver.Play(testserver.Receive(1), say("2"), testserver.Pause(100*ms), say("2")))
		got, took, err := s.whole(t, serverStream)
		if got != "[2 2]" || err != io.EOF || s.ends() != "[1 cancelled 2 won]" {
			t.Errorf("%s, %v after %v: %s", got, err, took, s.ends())
		}
	})
}

// The call ends while its first message is on its way, and the application makes no other call.
func TestAStreamThatIsCancelledAsItIsAnsweredIsReleased(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		s = s.within(t, func(_ context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
			return &lateReceiver{stream, func() { cancel(); time.Sleep(ms) }}
		})
		s.On(get, testserver.Play(testserver.Receive(1), say("a"), testserver.Pause(time.Hour)))
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		time.Sleep(time.Second)
		s.overOnce(t, codes.Canceled, 1)
	}, described(t))
}

func TestAnAttemptThatRefusesAMessageOnThisSideEndsAHedgedStream(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		gate := make(chan struct{})
		close(gate)
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 2 {
				return slow{stream, gate, status.Error(codes.Unavailable, "an interceptor's no")}
			}
			return stream
		})
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		e, _ := errors.AsType[*interceptor.Error](err)
		if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != policy.CommitUnsendable || s.sent() != "[0s 100ms]" {
			t.Errorf("%v, %+v, sent %s", err, e, s.sent())
		}
	})
}

func TestAHedgeOfAStreamIsPaidAsOne(t *testing.T) {
	purse := &purse{grants: 10}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(0, "second"))
		_, _, _ = s.whole(t, bidiStream)
		synctest.Wait()
		want := fmt.Sprintf("asked [%v], failed 0, returned 0, refunded 1, ok 1, bad 0", budget.KindHedge)
		if purse.String() != want {
			t.Errorf("the budget: %v; want %s", purse, want)
		}
	}, interceptor.WithBudget("", purse))
}
