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
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/testserver"
)

// join receives a message and a raw one, and sends both at once.
func join(stream grpc.ServerStream) error {
	var first wrapperspb.StringValue
	var second []byte
	if err := errors.Join(stream.RecvMsg(&first), stream.RecvMsg(&second)); err != nil {
		return err
	}
	if err := stream.RecvMsg(&first); !errors.Is(err, io.EOF) {
		return status.Errorf(codes.Internal, "got %v; want EOF", err)
	}
	return errors.Join(stream.SendMsg(text(first.GetValue())), stream.SendMsg(second))
}

func TestStreamTakesMessagesAndBytes(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]testserver.Step{
		"first":          testserver.Stream(join),
		"after one read": testserver.Func(func(context.Context, testserver.Attempt) testserver.Step { return testserver.Stream(join) }),
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, step)
				w := s.open(t.Context(), t)
				w.send("a", "b")
				w.closeSend()
				w.want("a", "b")
				w.wantEnd(codes.OK)
				a := s.Attempts()[0]
				if len(a.Requests) != 2 || a.Received != 2 || a.Sent != 2 || !a.HalfClosed {
					t.Errorf("recorded %+v; want 2 messages each way and the half-close", a)
				}
			})
		})
	}
}

func TestPlayMakesItsMovesInOrder(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, faults.Play(
			faults.Receive(2),
			faults.Pause(time.Hour),
			faults.Send(text("one")),
			faults.Receive(1),
			faults.Send(text("two"), text("three")),
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
		failing := faults.Play(faults.Receive(1), faults.Send(text("half"))).Times(2)
		s.On(watch, failing.Then(testserver.Fail(codes.Unavailable).Pushback("250")), faults.Play(faults.Echo(0)))
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
		s.On(watch, faults.Play(faults.Send(text("move"))).
			Header(metadata.Pairs("shard", "7")).Delay(time.Minute).
			Trailer(metadata.Pairs("cost", "1")).
			Then(testserver.OK(text("reply"), text("last")).Trailer(metadata.Pairs("cost", "2"))))
		start := time.Now()
		w := s.open(t.Context(), t)
		if header, err := w.Header(); err != nil || len(header["shard"]) != 1 || time.Since(start) != 0 {
			t.Errorf("headers %v, %v after %v; want them at once", header, err, time.Since(start))
		}
		w.want("move")
		if took := time.Since(start); took != time.Minute {
			t.Errorf("the first message came after %v; want 1m", took)
		}
		w.want("reply", "last")
		w.wantEnd(codes.OK)
		if got := w.Trailer().Get("cost"); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("trailer %q; want both steps'", got)
		}
	})
}

func TestPlayOfEveryCallKind(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), faults.Send(text("pong"))))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.OK)
		wantText(t, "reply of a unary call", a.reply, "pong")

		s.On(list, faults.Play(faults.Receive(0), faults.Send(text("sum"))))
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
		"Cut":    {testserver.Cut(), codes.Unavailable, 0},
		"Random": {testserver.Random(1, 1, testserver.Drop()), codes.Unavailable, 0},
		"Func": {testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			return testserver.Fail(codes.Code(10 + len(a.Requests)))
		}), codes.Aborted + 1, 0},
		"Play": {faults.Play(faults.Pause(ms)).Then(testserver.Fail(codes.DataLoss)), codes.DataLoss, ms},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, faults.Play(faults.Receive(1), faults.Send(text("one"), text("two"))).Then(row.end))
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

func TestRandomDoesNotReceiveBeforeThePlay(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, testserver.Random(1, 1, faults.Play(faults.Send(text("hello")))))
		w := s.open(t.Context(), t)
		w.want("hello")
		w.wantEnd(codes.OK)
		s.On(watch, testserver.Random(1, 0, faults.Play()))
		w = s.open(t.Context(), t)
		w.send("a")
		w.want("")
		w.wantEnd(codes.OK)
	})
}

func TestPlayEndsWhenClientIsGone(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]faults.Move{
		"Receive": faults.Receive(1), "EchoAll": faults.Echo(0), "Pause": faults.Pause(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, faults.Play(move, faults.Send(text("late"))))
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
	{get, faults.Play(faults.Receive(-1)), "step 1: Play: move 1: Receive(-1): want 0 or more"},
	{get, faults.Play(faults.Echo(-1)), "step 1: Play: move 1: Echo(-1): want 0 or more"},
	{get, faults.Play(faults.Pause(-1)), "step 1: Play: move 1: Pause(-1ns): want 0 or more"},
	{get, faults.Play(faults.Receive(1), faults.Send()), "step 1: Play: move 2: Send(): want at least one message"},
	{get, faults.Play(faults.SendRaw()), "step 1: Play: move 1: SendRaw(): want at least one message"},
	{get, faults.Play(faults.Send(wrapperspb.String("\xff"))), "step 1: Play: move 1: Send(*wrapperspb.StringValue): "},
	{get, faults.Play(faults.SendHeader(metadata.Pairs("te", ""))), `step 1: Play: move 1: Header("te"): gRPC writes this key itself`},
	{get, faults.Play(faults.Echo(0), faults.SendHeader(nil)), "step 1: Play: move 2: SendHeader: headers were sent before: want it first"},
	{get, faults.Play(faults.SendHeader(nil), faults.SendHeader(nil)), "step 1: Play: move 2: SendHeader: headers were sent"},
	{get, faults.Play(faults.Cut(), faults.Receive(1)), "step 1: Play: move 1: Cut: nothing can follow: want it last"},
	{get, faults.Play(faults.Cut()).Then(testserver.OK()), "step 1: Then after Cut: the connection is gone: want one of them"},
	{get, faults.Play(faults.Cut()).RawReplies([]byte{}), "step 1: messages after Cut: the connection is gone: want them before it"},
	{get, faults.Play(faults.Move{}), "step 1: Play: move 1 is Move{}: want Receive(…), Send(…) or another"},
	{get, testserver.Stream(nil), "step 1: Stream(nil): want a function"},
	{get, faults.Play().Then(testserver.Fail(codes.OK)), "step 1: Fail with code OK"},
	{get, faults.Play().Then(testserver.OK()).Then(testserver.OK()), "step 1: Then: the end is set already: want one Then"},
	{get, faults.Play().Then(testserver.OK().Times(2)), "step 1: Then of a step with Times: want Stream(…).Then(…).Times(…)"},
	{get, testserver.OK().Then(testserver.OK()), "step 1: Then: only a Stream, and OK with replies, have an end to set: want Stream(…).Then(…)"},
	{get, testserver.Random(1, 1, faults.Play()).Then(testserver.OK()), "step 1: Then: only a Stream, and OK with replies, have an end to set"},
}
