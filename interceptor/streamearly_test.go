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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// ended is what SendMsg says of a stream that the server has ended: io.EOF, after which RecvMsg
// tells how.
func ended(t *testing.T, stream grpc.ClientStream) {
	t.Helper()
	if err := stream.SendMsg(wrapperspb.String("more")); err != io.EOF {
		t.Errorf("SendMsg to a stream that has ended: %v; want io.EOF", err)
	}
}

func TestAnEarlyReplyToAClientStreamThatStillSendsIsNotLost(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("enough")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "a")
		time.Sleep(time.Second)
		ended(t, stream)
		ended(t, stream)
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "enough" {
			t.Errorf("%q, %v; want the reply", m.GetValue(), err)
		}
		if err := stream.RecvMsg(m); err != io.EOF {
			t.Errorf("RecvMsg after the reply: %v; want io.EOF", err)
		}
		if s.Count(get) != 1 || len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonSucceeded {
			t.Errorf("%d attempts, calls %+v", s.Count(get), s.calls)
		}
	}, described(t))
}

func TestMessagesThatCameBeforeAnEarlyEndAreNotLost(t *testing.T) {
	for name, row := range map[string]struct {
		end  testserver.Step
		want codes.Code
	}{
		"success": {testserver.OK(), codes.OK},
		"failure": {down(), codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.Receive(1), say("x", "y", "z")).Then(row.end))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "a")
				time.Sleep(time.Second)
				ended(t, stream)
				got, err := receive(stream)
				if err == io.EOF {
					err = nil
				}
				if fmt.Sprint(got) != "[x y z]" || status.Code(err) != row.want || s.Count(get) != 1 {
					t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
				}
			}, described(t))
		})
	}
}

func TestAStreamThatEndsAtOnceWithOKIsNoFailure(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if md, err := stream.Header(); md.Get("content-type") != nil && err != nil {
			t.Errorf("Header: %v, %v", md, err)
		}
		time.Sleep(time.Second)
		ended(t, stream)
		if got, err := receive(stream); got != nil || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if s.Count(get) != 1 || len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonSucceeded {
			t.Errorf("%d attempts, calls %+v", s.Count(get), s.calls)
		}
	})
}

func TestHeaderAndTrailerOfAnEarlyReplyAreThoseOfItsAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			down().Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1")),
			testserver.Play(testserver.Receive(2), say("enough")).Header(metadata.Pairs("from", "2")).Trailer(metadata.Pairs("end", "2")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "a")
		time.Sleep(time.Second)
		send(t, stream, "b") // finds the failure
		time.Sleep(time.Second)
		ended(t, stream)
		md, err := stream.Header()
		if got := fmt.Sprint(md["from"], err, stream.Trailer()["end"]); got != "[2] <nil> [2]" {
			t.Errorf("header, error, trailer: %s", got)
		}
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "enough" {
			t.Errorf("%q, %v; want the reply", m.GetValue(), err)
		}
	}, described(t))
}

func TestAMessageCutInItsMiddleIsNotDeliveredButEndsACommittedStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("a", "b"), testserver.Cut()))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		synctest.Wait()
		if fmt.Sprint(got) != "[a b]" || status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonCommitted || s.Count(get) != 1 {
			t.Errorf("%v, %v: %s after %d attempts", got, err, reasonOf(err), s.Count(get))
		}
	})
}

func TestAFirstMessageCutInItsMiddleIsAskedForAgain(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Cut()), testserver.Play(testserver.Receive(1), say("a", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b]" || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}
