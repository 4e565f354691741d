// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/testserver"
)

// These are about inner interceptors that receive ahead, and know of an end before the application does.

// muted is a hoarder that keeps gRPC's io.EOF from SendMsg to itself.
type muted struct{ *hoarder }

func (m muted) SendMsg(message any) error {
	if err := m.ClientStream.SendMsg(message); err != io.EOF {
		return err
	}
	return nil
}

// An inner interceptor takes a message for an attempt that it knows has ended. Another attempt gets the message, though it can't be kept,
// unless the call is committed to the one that has ended.
func TestStreamInner_TakesForAnEndedAttempt(t *testing.T) {
	for kind, want := range map[string]string{"running": "[a] OK [[] [too large to be kept]]", "committed": "[] Unavailable [[]]"} {
		t.Run(kind, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
					if n > 1 {
						return stream
					}
					h := &hoarder{ClientStream: stream, messages: make(chan string, 10)}
					go h.hoard()
					return muted{h}
				})
				s.On(get, moves.Play().Then(down()), moves.Play(moves.Receive(1), say("a")))
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
				if kind == "committed" {
					stream.Context()
				}
				synctest.Wait()
				send(t, stream, "too large to be kept")
				got, err := receive(stream)
				var heard [][]string
				for n := range s.Attempts() {
					heard = append(heard, s.heard(n))
				}
				if end := fmt.Sprint(got, " ", status.Code(streamEnd(err)), " ", heard); end != want {
					t.Errorf("%s (%s); want %s", end, reasonOf(err), want)
				}
			})
		})
	}
}

// delayed is a hoarder that holds what it returns, from its second RecvMsg on, for a second.
type delayed struct {
	*hoarder

	received *int
}

func (h delayed) RecvMsg(m any) error {
	if *h.received++; *h.received > 1 {
		time.Sleep(time.Second)
	}
	return h.hoarder.RecvMsg(m)
}

// The application is inside of an inner interceptor when the second is over, and gets what that returns.
func TestStreamInner_ReportedWhileInside(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		h := delayed{&hoarder{messages: make(chan string, 10), own: status.Error(codes.DataLoss, "own")}, new(int)}
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { h.ClientStream = stream; return h })
		s.On(get, moves.Play(say("a")).Then(testserver.Fail(codes.NotFound)))
		stream := must.Get(conn.NewStream(t.Context(), bidiStream, get))(t)
		stream.Context()
		go h.hoard()
		time.Sleep(500 * ms)
		got, err := receive(stream)
		if _, again := receive(stream); fmt.Sprint(got) != "[a]" || status.Code(err) != codes.DataLoss || again != err {
			t.Errorf("%v, %v, then %v; want the interceptor's error", got, err, again)
		}
		s.overOnce(t, codes.NotFound, 1)
	})
}

// The application has a second to find an end that an inner interceptor has found. What it finds is the end of the call.
func TestStreamInner_ASecondToFind(t *testing.T) {
	failure, success := moves.Play().Then(testserver.Fail(codes.NotFound)), moves.Play()
	for name, c := range map[string]spec.Config{"single": {}, "committed": config(plain())} {
		for _, row := range []struct {
			step  testserver.Step
			after time.Duration
			want  codes.Code
		}{
			{failure, 999 * ms, codes.DataLoss},
			{failure, 1001 * ms, codes.NotFound},
			{success, 999 * ms, codes.DataLoss},
			{success, 1001 * ms, codes.OK},
		} {
			t.Run(fmt.Sprint(name, " ", row.want, " ", row.after), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, row.step)
					h := &hoarder{messages: make(chan string, 10), own: status.Error(codes.DataLoss, "own")}
					conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { h.ClientStream = stream; return h })
					stream := must.Get(conn.NewStream(t.Context(), bidiStream, get))(t)
					if name == "committed" {
						stream.Context()
					}
					go h.hoard()
					time.Sleep(row.after)
					if err := stream.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.DataLoss {
						t.Errorf("RecvMsg: %v; want the interceptor's error", err)
					}
					s.overOnce(t, row.want, 1)
				})
			})
		}
	}
}

// SendMsg after CloseSend is the application's mistake, as in gRPC, whether an attempt runs or not.
func TestStreamSend_AfterClose(t *testing.T) {
	for when, after := range map[string]time.Duration{"an attempt runs": ms, "in the backoff": 1050 * ms} {
		t.Run(when, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Pause(time.Second)).Then(down()), moves.Play(moves.Echo(0)))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				must.Do(t, stream.CloseSend())
				go func() {
					time.Sleep(after)
					if err := stream.SendMsg(wrapperspb.String("late")); err == nil { // io.EOF if RecvMsg is first
						t.Error("SendMsg takes a message")
					}
				}()
				got, err := receive(stream)
				if len(got) > 0 || status.Code(err) != codes.Internal || s.Count(get) > 2 { // the server may see the second one, which the mistake ends
					t.Errorf("%v, %v after %d attempts; want the mistake to end the call", got, err, s.Count(get))
				}
			})
		})
	}
}
