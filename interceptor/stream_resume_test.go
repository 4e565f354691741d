// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestResume_Hedged(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(1), say("1", "2")).Then(down()),
			testserver.Hang(),
			moves.Play(moves.Receive(1), say("3", "4")))
		next := func(last proto.Message) (proto.Message, bool) {
			m, ok := last.(*wrapperspb.StringValue)
			return wrapperspb.String("after " + m.GetValue()), ok
		}
		got, _, err := s.whole(t, serverStream, interceptor.Resume(next))
		if got != "[1 2 3 4]" || err != io.EOF || s.sent() != "[0s 0s 100ms]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[x] [after 2] [after 2]]" {
			t.Errorf("the attempts heard %s", heard)
		}
		s.overOnce(t, codes.OK, 3)
	})
}

// The first message after a cut comes from a race again, and is the one that the next cut resumes after.
func TestResume_HedgedAndResumed(t *testing.T) {
	play(t, hedged(func(h *policy.HedgeSpec) { h.MaxAttempts = 4 }), func(t *testing.T, s scene) {
		cut := func(texts ...string) testserver.Step {
			return moves.Play(moves.Receive(1), say(texts...)).Then(down())
		}
		s.On(get, cut("1"), testserver.Hang(), cut("2"), cut("3"), down())
		next := func(last proto.Message) (proto.Message, bool) { return proto.Clone(last), true }
		got, _, err := s.whole(t, serverStream, interceptor.Resume(next))
		if got != "[1 2 3]" || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%s, %v", got, err)
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[x] [1] [1] [2] [3] [3] [3]]" {
			t.Errorf("the attempts heard %s", heard)
		}
	})
}

// A server may answer before it is asked, and the request be on its way still when the rest is asked for.
func TestResume_LateRequest(t *testing.T) {
	for name, late := range map[string]time.Duration{
		"in the backoff":          1050 * ms,
		"beside the next attempt": 1500 * ms,
		"after the end":           time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
					if n > 1 {
						return stream
					}
					return &spy{stream, func(any) { time.Sleep(late) }}
				})
				s.On(get,
					moves.Play(say("a"), moves.Pause(time.Second)).Then(down()),
					moves.Play(moves.Receive(1), say("b"), moves.Pause(time.Second)))
				rest := func(proto.Message) (proto.Message, bool) { return wrapperspb.String("the rest"), true }
				stream := s.open(t, t.Context(), serverStream, interceptor.Resume(rest))
				go func() {
					if err := stream.SendMsg(wrapperspb.String("all")); err != nil {
						t.Errorf("SendMsg: %v", err)
					}
				}()
				if got, err := receive(stream); err != io.EOF || fmt.Sprint(got) != "[a b]" || fmt.Sprint(s.heard(1)) != "[the rest]" || s.Count(get) != 2 {
					t.Errorf("%v, %v; the second of %d attempts heard %v", got, err, s.Count(get), s.heard(1))
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// after asks for what comes after the last message.
func after(last proto.Message) (proto.Message, bool) {
	n, err := strconv.Atoi(last.(*wrapperspb.StringValue).GetValue())
	return wrapperspb.String("after " + strconv.Itoa(n)), err == nil
}

func TestResume(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(1), say("1", "2")).Then(down()),
			down(), // and the next attempt does not get anywhere
			moves.Play(moves.Receive(1), say("3"), moves.Cut()),
			moves.Play(moves.Receive(1), say("4")))
		time.AfterFunc(time.Second, s.conn.ResetConnectBackoff)
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1 2 3 4]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		var asked []string
		for i := range s.Attempts() {
			asked = append(asked, s.heard(i)...)
		}
		if fmt.Sprint(asked) != "[from the start after 2 after 2 after 3]" {
			t.Errorf("the server was asked %q", asked)
		}
		if c := s.calls[0]; c.Attempt != 4 || c.Reason != policy.ReasonSucceeded {
			t.Errorf("call %+v", c)
		}
	})
}

// So is the message of an attempt that the call was committed to before, since the application asked for headers.
func TestResume_BoundAfterHeaders(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), down(), moves.Play(moves.Receive(1), say("1")).Then(down()), down())
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		must.Get(stream.Header())(t)
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1]" || reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 6 {
			t.Errorf("%v, %s after %d attempts; want three after the one that brought a message", got, reasonOf(err), s.Count(get))
		}
	})
}

// The limit of the call is counted from an attempt that brought a message, as the policy's is.
func TestResume_MaxAttempts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		brings := func(text string) testserver.Step { return moves.Play(moves.Receive(1), say(text)).Then(down()) }
		s.On(get, brings("1"), brings("2"), down(), text("not reached"))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after), interceptor.MaxAttempts(2))
		send(t, stream, "from the start")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1 2]" || reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 3 {
			t.Errorf("%v, %s after %d attempts; want one after the last that brought a message", got, reasonOf(err), s.Count(get))
		}
	})
}

func TestResume_Copy(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(1), say("7")).Then(down()),
			moves.Play(moves.Receive(1), say("8")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		m := new(wrapperspb.StringValue)
		must.Do(t, stream.RecvMsg(m))
		m.Value = "the application's now"
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "8" {
			t.Errorf("%v, %v", m, err)
		}
		if got := fmt.Sprint(s.heard(1)); got != "[after 7]" {
			t.Errorf("the server was asked %s", got)
		}
	})
}

func TestResume_OneReply(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("1"))
		stream := s.open(t, t.Context(), &grpc.StreamDesc{}, interceptor.Resume(after))
		stream.Context()
		send(t, stream, "x")
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil || len(s.calls) != 1 {
			t.Errorf("%v, told of %d ends; want one", err, len(s.calls))
		}
	})
}
