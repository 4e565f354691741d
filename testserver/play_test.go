// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

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

func TestPlayIsOneStep(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		failing := testserver.Play(testserver.Receive(1), testserver.Send(text("half"))).Times(2)
		s.On(watch, failing.Then(testserver.Fail(codes.Unavailable).Pushback("250")), testserver.Play(testserver.Echo(0)))
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

func TestPlayRefined(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, testserver.Play(testserver.Send(text("move"))).
			Header(metadata.Pairs("shard", "7")).Delay(time.Minute).Reply(text("reply")).Raw([]byte(textOf("raw"))).
			Trailer(metadata.Pairs("cost", "1")).
			Then(testserver.OK(text("last")).Trailer(metadata.Pairs("cost", "2"))))
		start := time.Now()
		w := s.open(t.Context(), t)
		if header, err := w.Header(); err != nil || len(header["shard"]) != 1 || time.Since(start) != 0 {
			t.Errorf("headers %v, %v after %v; want them at once", header, err, time.Since(start))
		}
		w.want("move")
		if took := time.Since(start); took != time.Minute {
			t.Errorf("the first message came after %v; want 1m", took)
		}
		w.want("reply", "raw", "last")
		w.wantEnd(codes.OK)
		if got := w.Trailer().Get("cost"); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("trailer %q; want both steps'", got)
		}
	})
}

func TestPlayOfEveryCallKind(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Send(text("pong"))))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.OK)
		wantText(t, "reply of a unary call", a.reply, "pong")

		s.On(list, testserver.Play(testserver.Receive(0), testserver.Send(text("sum"))))
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

func TestThen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  testserver.Step
		code codes.Code
		took time.Duration
	}{
		"OK":     {testserver.OK(), codes.OK, 0},
		"Fail":   {testserver.Fail(codes.Aborted), codes.Aborted, 0},
		"Delay":  {testserver.Fail(codes.Aborted).Delay(time.Minute), codes.Aborted, time.Minute},
		"Hang":   {testserver.Hang(), codes.DeadlineExceeded, time.Hour},
		"Drop":   {testserver.Drop(), codes.Unavailable, 0},
		"Random": {testserver.Random(1, 1, testserver.Drop()), codes.Unavailable, 0},
		"Func": {testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			return testserver.Fail(codes.Code(10 + len(a.Requests)))
		}), codes.Aborted + 1, 0},
		"Play": {testserver.Play(testserver.Pause(ms)).Then(testserver.Fail(codes.DataLoss)), codes.DataLoss, ms},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, testserver.Play(testserver.Receive(1), testserver.Send(text("one"), text("two"))).Then(row.end))
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				w := s.open(ctx, t)
				w.send("a")
				w.want("one", "two")
				w.wantEnd(row.code)
				if took := time.Since(start); took != row.took {
					t.Errorf("ended after %v; want %v", took, row.took)
				}
			}, testserver.Keep(0))
		})
	}
}

func TestPlayFromFuncAndRandom(t *testing.T) {
	t.Parallel()
	play := testserver.Play(testserver.Echo(2))
	for name, step := range map[string]testserver.Step{
		"Func":   testserver.Func(func(context.Context, testserver.Attempt) testserver.Step { return play }),
		"Random": testserver.Random(1, 1, play),
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, step)
				w := s.open(t.Context(), t)
				w.send("a", "b")
				w.want("a", "b")
				w.wantEnd(codes.OK)
			}, testserver.Keep(0))
		})
	}
}

func TestRandomDoesNotReceiveBeforeThePlay(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, testserver.Random(1, 1, testserver.Play(testserver.Send(text("hello")))))
		w := s.open(t.Context(), t)
		w.want("hello")
		w.wantEnd(codes.OK)
		s.On(watch, testserver.Random(1, 0, testserver.Play()))
		w = s.open(t.Context(), t)
		w.send("a")
		w.want("")
		w.wantEnd(codes.OK)
	})
}

func TestPlayEndsWhenClientIsGone(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]testserver.Move{
		"Receive": testserver.Receive(1), "EchoAll": testserver.Echo(0), "Pause": testserver.Pause(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, testserver.Play(move, testserver.Send(text("late"))))
				ctx, cancel := context.WithCancel(t.Context())
				w := s.open(ctx, t)
				time.AfterFunc(7*time.Second, cancel)
				w.wantEnd(codes.Canceled)
				synctest.Wait()
				a := s.Attempts()[0]
				if a.Code != codes.Canceled || !a.Cancelled || a.End.Sub(a.Time) != 7*time.Second || a.Sent != 0 {
					t.Errorf("the server saw %+v; want it cancelled after 7s, with nothing sent", a)
				}
			})
		})
	}
}

// badPlays are plays that On must refuse.
var badPlays = []badStep{
	{get, testserver.Play(testserver.Receive(-1)), "step 1: Play: move 1: Receive(-1): want 0 or more"},
	{get, testserver.Play(testserver.Echo(-1)), "step 1: Play: move 1: Echo(-1): want 0 or more"},
	{get, testserver.Play(testserver.Pause(-1)), "step 1: Play: move 1: Pause(-1ns): want 0 or more"},
	{get, testserver.Play(testserver.Receive(1), testserver.Send()), "step 1: Play: move 2: Send(): want at least one message"},
	{get, testserver.Play(testserver.SendRaw()), "step 1: Play: move 1: SendRaw(): want at least one message"},
	{get, testserver.Play(testserver.Send(wrapperspb.String("\xff"))), "step 1: Play: move 1: Send(*wrapperspb.StringValue): "},
	{get, testserver.Play(testserver.SendHeader(metadata.Pairs("te", ""))), `step 1: Play: move 1: SendHeader("te"): gRPC writes this key itself`},
	{get, testserver.Play(testserver.Echo(0), testserver.SendHeader(nil)), "step 1: Play: move 2: SendHeader: headers have gone out before: want it first"},
	{get, testserver.Play(testserver.SendHeader(nil), testserver.SendHeader(nil)), "step 1: Play: move 2: SendHeader: headers have gone out"},
	{get, testserver.Play(testserver.Cut(), testserver.Receive(1)), "step 1: Play: move 1: Cut: nothing can follow: want it last"},
	{get, testserver.Play(testserver.Cut()).Then(testserver.OK()), "step 1: Then after Cut: the connection is gone: want one of them"},
	{get, testserver.Play(testserver.Cut()).Reply(wrapperspb.String("")), "step 1: messages after Cut: the connection is gone: want Send before it"},
	{get, testserver.Play(testserver.Move{}), "step 1: Play: move 1 is Move{}: want Receive(…), Send(…) or another"},
	{get, testserver.Play().Then(testserver.Fail(codes.OK)), "step 1: Fail with code OK"},
	{get, testserver.Play().Then(testserver.OK()).Then(testserver.OK()), "step 1: Then: the end is set already: want one Then"},
	{get, testserver.Play().Then(testserver.OK().Times(2)), "step 1: Then of a step with Times: want Play(…).Then(…).Times(…)"},
	{get, testserver.OK().Then(testserver.OK()), "step 1: Then: only a Play has an end to set: want Play(…).Then(…)"},
	{get, testserver.Random(1, 1, testserver.Play()).Then(testserver.OK()), "step 1: Then: only a Play has an end to set"},
}
