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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// after asks for what comes after the last message.
func after(last proto.Message) (proto.Message, bool) {
	n, err := strconv.Atoi(last.(*wrapperspb.StringValue).GetValue())
	return wrapperspb.String("after " + strconv.Itoa(n)), err == nil
}

func TestResumeMakesOneStreamOfSeveral(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1), say("1", "2")).Then(down()),
			down(), // and the next attempt does not get anywhere
			testserver.Play(testserver.Receive(1), say("3"), testserver.Cut()),
			testserver.Play(testserver.Receive(1), say("4")))
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
		if c := s.calls[0]; c.Attempts != 4 || c.Reason != policy.ReasonSucceeded {
			t.Errorf("call %+v", c)
		}
	})
}

// A resumption that brings a message is progress: the attempts are counted anew.
func TestResumptionsAreBoundByThePolicySinceTheLastMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		cut := testserver.Play(testserver.Receive(1), say("1")).Then(down())
		s.On(get, cut, cut, down(), down(), cut, down())
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1 1 1]" || reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 8 {
			t.Errorf("%v, %s after %d attempts; want three after the last that brought a message", got, reasonOf(err), s.Count(get))
		}
	})
}

// So is the message of an attempt that the call was committed to before, since the application asked for headers.
func TestResumptionsAreBoundSinceTheLastMessageAfterHeaders(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), down(), testserver.Play(testserver.Receive(1), say("1")).Then(down()), down())
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		if _, err := stream.Header(); err != nil {
			t.Fatal(err)
		}
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1]" || reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 6 {
			t.Errorf("%v, %s after %d attempts; want three after the one that brought a message", got, reasonOf(err), s.Count(get))
		}
	})
}

func TestResumeMayDecline(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("not a number")).Then(down()))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		if got, err := receive(stream); len(got) != 1 || reasonOf(err) != policy.ReasonCommitted || s.Count(get) != 1 {
			t.Errorf("%v, %s after %d attempts; want committed after 1", got, reasonOf(err), s.Count(get))
		}
	})
}

func TestResumeGetsACopyOfTheLastMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1), say("7")).Then(down()),
			testserver.Play(testserver.Receive(1), say("8")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil {
			t.Fatal(err)
		}
		m.Value = "the application's now"
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "8" {
			t.Errorf("%v, %v", m, err)
		}
		if got := fmt.Sprint(s.heard(1)); got != "[after 7]" {
			t.Errorf("the server was asked %s", got)
		}
	})
}

func TestResumeDoesNothingForACallOfOneReply(t *testing.T) {
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
