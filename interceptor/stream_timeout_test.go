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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestStreamTimeout_AnswerCrosses(t *testing.T) {
	for _, at := range []time.Duration{999 * ms, 1000 * ms, 1050 * ms, 1099 * ms, 1100 * ms, 1101 * ms} {
		t.Run(at.String(), func(t *testing.T) {
			play(t, config(hasty()), func(t *testing.T, s scene) {
				s.On(get,
					moves.Play(moves.Receive(1), moves.Pause(at), say("1a"), moves.Pause(time.Minute), say("1b")),
					moves.Play(moves.Receive(1), say("2a", "2b")))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				got, err := receive(stream)
				first, second := "[1a 1b] 1", "[2a 2b] 2"
				synctest.Wait()
				now := fmt.Sprint(got, " ", s.Count(get))
				if err != io.EOF || now != first && now != second || at < 1100*ms && now != first || at > 1100*ms && now != second {
					t.Errorf("%s, %v", now, err)
				}
			})
		})
	}
}

// The budget pays once for the decision about the slow attempt.
func TestStreamTimeout_BesideBudget(t *testing.T) {
	retry := besides()
	retry.Budget = ""
	purse := &purse{grants: 10}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(0, "second"))
		if got, _, err := s.whole(t, serverStream); got != "[second]" || err != io.EOF {
			t.Errorf("%s, %v", got, err)
		}
		if d := s.decisions[0]; !timedOut(d) || d.Reason != policy.ReasonHedge {
			t.Errorf("%+v", d)
		}
		want := "asked [timeout], failed 1, returned 0, refunded 1, ok 1, bad 0"
		if purse.String() != want {
			t.Errorf("the budget: %v; want %s", purse, want)
		}
	}, interceptor.WithBudget("", purse))
}

func TestStreamTimeout_NobodyReceives(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), moves.Play(moves.Receive(0), say("sum")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "a")
		time.Sleep(1500 * ms)
		send(t, stream, "b")
		_ = stream.CloseSend()
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "sum" || s.waits() != "[2.6s]" { // the attempt is not slow while no call waits
			t.Errorf("%q, %v, waits %s; want the second attempt when the first is given up", m.GetValue(), err, s.waits())
		}
		if got := fmt.Sprint(s.heard(1)); got != "[a b]" {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}

func TestStreamTimeout_CancelledAfter(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.open(t, ctx, clientStream)
		send(t, stream, "a")
		go func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }()
		time.Sleep(2 * time.Second)
		cancel()
		s.overOnce(t, codes.Canceled, 2)
	})
}

// Attempts that replace each other are not hedges.
func TestStreamTimeout_InPlaceIsARetry(t *testing.T) {
	retry := plain()
	retry.PerAttemptTimeout, retry.CancelOnTimeout = time.Second, true
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), moves.Play(say("a")))
		if got, _ := receive(s.open(t, t.Context(), bidiStream)); len(got) != 1 || s.waits() != "[1.1s]" {
			t.Errorf("%v after %s", got, s.waits())
		}
		if d := s.decisions[0]; !timedOut(d) || d.Reason != policy.ReasonRetry {
			t.Errorf("%+v; want a retry", d)
		}
	})
}

func TestStreamTimeout_Header(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), moves.Play(moves.Receive(1), say("a")).Header(metadata.Pairs("from", "2")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		md, err := stream.Header()
		if fmt.Sprint(md["from"]) != "[2]" || err != nil || s.waits() != "[1.1s]" {
			t.Errorf("%v, %v, waits %s", md["from"], err, s.waits())
		}
	})
}

func TestStreamTimeout_BlockedSend(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.Server = testserver.Start(t, testserver.ServerOptions(grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(1<<20)))
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		s.On(get, moves.Play(moves.Pause(time.Hour)), moves.Play(moves.Receive(0), say("sum")))
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

func TestStreamTimeout_UnreadMessage(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(1), say("of the first"), moves.Receive(1)),
			moves.Play(moves.Receive(2), say("of the second")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		time.Sleep(1500 * ms) // the application doesn't receive the message, which has arrived in time
		send(t, stream, "y")
		if got, err := receive(stream); fmt.Sprint(got) != "[of the first]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestStreamTimeout_DecisionsNameTheirAttempts(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		_, _ = receive(stream)
		var about []string
		for _, d := range s.decisions {
			about = append(about, fmt.Sprint(d.Attempt, timedOut(d)))
		}
		if got := strings.Join(about, ", "); got != "1 true, 2 true, 3 true, 4 false" { // the deadline ends the call
			t.Errorf("decisions about attempts %s", got)
		}
	})
}
