// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

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
