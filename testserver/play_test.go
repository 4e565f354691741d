// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/testserver"
)

func TestPlayMakesItsMovesInOrder(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, testserver.Play(
			testserver.Receive(2),
			testserver.Pause(time.Hour),
			testserver.Send(text("one")),
			testserver.Receive(1),
			testserver.Send(text("two"), text("three")),
		))
		start := time.Now()
		w := s.open(t.Context(), t)
		w.send("a", "b")
		w.want("one")
		if took := time.Since(start); took != time.Hour {
			t.Errorf("the first message came after %v; want 1h exactly", took)
		}
		w.send("c")
		w.want("two", "three")
		w.wantEnd(codes.OK)
	})
}

func TestAPlayIsOneStepOfAScript(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		failing := testserver.Play(testserver.Receive(1), testserver.Send(text("half"))).Times(2)
		s.On(watch, failing.Then(testserver.Fail(codes.Unavailable).Pushback("250")), testserver.Play(testserver.EchoAll()))
		for range 2 {
			w := s.open(t.Context(), t)
			w.send("a")
			w.want("half")
			w.wantEnd(codes.Unavailable)
			if got := w.Trailer().Get(pushback); !slices.Equal(got, []string{"250"}) {
				t.Errorf("pushback %q; want 250", got)
			}
		}
		w := s.open(t.Context(), t)
		w.send("a")
		w.closeSend()
		w.want("a")
		w.wantEnd(codes.OK)
	})
}

func TestRefinementsStandAroundTheMoves(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, testserver.Play(testserver.Send(text("move"))).
			Header(metadata.Pairs("shard", "7")).Delay(time.Minute).Reply(text("reply")).Raw([]byte(textOf("raw"))).
			Trailer(metadata.Pairs("cost", "1")).Through(testserver.NewQueue(1, time.Second, 0)).
			Then(testserver.OK(text("last")).Trailer(metadata.Pairs("cost", "2"))))
		start := time.Now()
		w := s.open(t.Context(), t)
		if header, err := w.Header(); err != nil || len(header["shard"]) != 1 || time.Since(start) != time.Second {
			t.Errorf("headers %v, %v after %v; want them after the queue's 1s", header, err, time.Since(start))
		}
		w.want("move")
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("the first message came after %v; want 1m1s", took)
		}
		w.want("reply", "raw", "last")
		w.wantEnd(codes.OK)
		if got := w.Trailer().Get("cost"); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("trailer %q; want both steps'", got)
		}
	})
}

func TestAPlayServesCallsOfEveryKind(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Send(text("pong"))))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.OK)
		wantText(t, "reply of a unary call", a.reply, "pong")

		s.On(list, testserver.Play(testserver.ReceiveAll(), testserver.Send(text("sum"))))
		upload, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, list)
		if err != nil {
			t.Fatal(err)
		}
		w := wire{upload, t}
		w.send("a", "b", "c")
		w.closeSend()
		w.want("sum")

		download, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, get)
		if err != nil {
			t.Fatal(err)
		}
		got, err := drain(t, download)
		wantText(t, "messages of a server stream", got, "pong ")
		if !errors.Is(err, io.EOF) {
			t.Errorf("a server stream ended with %v; want its end", err)
		}
	})
}
