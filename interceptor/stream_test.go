// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

var (
	serverStream = &grpc.StreamDesc{ServerStreams: true}
	clientStream = &grpc.StreamDesc{ClientStreams: true}
	bidiStream   = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
)

// ends are how the attempts came out, in the order in which they were sent.
func (s scene) ends() string {
	var list []string
	for _, e := range s.attempts {
		list = append(list, fmt.Sprintf("%d %s", e.Number, e.Place))
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// described has the Retrier know what GetOrder takes and brings, as it does from generated code that is linked in.
func described(t *testing.T) interceptor.Option {
	t.Helper()
	text := new(".google.protobuf.StringValue")
	return interceptor.WithDescriptors(writeSet(t, protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
		&descriptorpb.FileDescriptorProto{
			Name: new("orders.proto"), Package: new("acme.orders.v1"), Syntax: new("proto3"),
			Dependency: []string{"google/protobuf/wrappers.proto"},
			Service: []*descriptorpb.ServiceDescriptorProto{{
				Name:   new("OrderService"),
				Method: []*descriptorpb.MethodDescriptorProto{{Name: new("GetOrder"), InputType: text, OutputType: text}},
			}},
		}))
}

// open begins a stream; a failure ends the test.
func (s scene) open(t *testing.T, ctx context.Context, desc *grpc.StreamDesc, opts ...grpc.CallOption) grpc.ClientStream { //nolint:revive // t first
	t.Helper()
	stream, err := s.conn.NewStream(ctx, desc, get, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func send(t *testing.T, stream grpc.ClientStream, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := stream.SendMsg(wrapperspb.String(text)); err != nil {
			t.Fatalf("SendMsg(%s): %v", text, err)
		}
	}
}

// receive returns what the stream brings until it ends, and how it ends.
func receive(stream grpc.ClientStream) (texts []string, err error) {
	for {
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil {
			return texts, err
		}
		texts = append(texts, m.GetValue())
	}
}

func say(texts ...string) testserver.Move {
	var messages []proto.Message
	for _, text := range texts {
		messages = append(messages, wrapperspb.String(text))
	}
	return testserver.Send(messages...)
}

// heard is what the server received in its n-th attempt, from 0.
func (s scene) heard(n int) (texts []string) {
	for _, data := range s.Attempts()[n].Requests {
		m := new(wrapperspb.StringValue)
		if err := proto.Unmarshal(data, m); err != nil {
			return append(texts, err.Error())
		}
		texts = append(texts, m.GetValue())
	}
	return texts
}

func TestAServerStreamIsRetriedUntilItsFirstMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), testserver.Play(testserver.Receive(1), say("a", "b", "c")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b c]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if s.waits() != "[100ms 200ms]" {
			t.Errorf("waits %s", s.waits())
		}
	})
}

func TestDeliveredMessagesAreNeverRepeated(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("a", "b", "c")).Then(down()))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b c]" || reasonOf(err) != policy.ReasonCommitted || s.Count(get) != 1 {
			t.Errorf("%v, %v: %s after %d attempts", got, err, reasonOf(err), s.Count(get))
		}
	})
}

func TestAClientStreamIsReplayed(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1)).Then(down()),
			testserver.Play(testserver.Receive(2)).Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream := s.open(t, t.Context(), clientStream)
		for _, text := range []string{"a", "b", "c"} {
			send(t, stream, text)
			time.Sleep(time.Second) // virtual: the server has seen it, and may have failed
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		reply := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(reply); err != nil || reply.GetValue() != "sum" {
			t.Fatalf("%v, %v", reply, err)
		}
		synctest.Wait()
		if got := fmt.Sprint(s.heard(2)); got != "[a b c]" {
			t.Errorf("the last attempt heard %s", got)
		}
	})
}

func TestABidirectionalStreamIsReplayedUntilTheFirstReply(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(2)).Then(down()),
			testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a", "b")
		m := new(wrapperspb.StringValue)
		for _, want := range []string{"a", "b", "c", "d"} {
			if want > "b" {
				send(t, stream, want)
			}
			if err := stream.RecvMsg(m); err != nil || m.GetValue() != want {
				t.Fatalf("%v, %v; want %s", m, err, want)
			}
		}
		_ = stream.CloseSend()
		if err := stream.RecvMsg(m); err != io.EOF {
			t.Errorf("end: %v", err)
		}
	})
}

func TestAStreamThatCannotBeOpenedIsRetried(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(500*ms, s.Up)
		time.AfterFunc(600*ms, s.conn.ResetConnectBackoff)
		s.On(get, testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestOneAllowanceOfAttemptsForAllOfAStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		_ = stream.SendMsg(wrapperspb.String("a"))
		_, _ = stream.Header()
		_ = stream.SendMsg(wrapperspb.String("b"))
		_ = stream.CloseSend()
		_, err := receive(stream)
		if s.Count(get) != 4 || status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%d attempts, %v, %s; want 4", s.Count(get), err, reasonOf(err))
		}
	})
}

func TestReplayIsWhatTheApplicationSentThen(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll()).Then(down()), testserver.Play(testserver.ReceiveAll(), say("ok")))
		stream := s.open(t, t.Context(), clientStream)
		m := new(wrapperspb.StringValue)
		for _, text := range []string{"a", "b", "c"} {
			m.Value = text // one message, used again
			if err := stream.SendMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		_ = stream.CloseSend()
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.heard(1)); got != "[a b c]" {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}

func TestHeaderFirstOnAFailingStreamIsRetried(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if md, err := stream.Header(); md == nil || err != nil {
			t.Fatalf("%v, %v", md, err)
		}
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestCancellingAStreamAndNeverCallingAgainReleasesIt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.open(t, ctx, clientStream)
		send(t, stream, "a")
		cancel()
		synctest.Wait()
		if len(s.calls) != 1 || s.calls[0].Code != codes.Canceled {
			t.Errorf("calls %+v; want one that was cancelled", s.calls)
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.Canceled {
			t.Errorf("RecvMsg: %v", err)
		}
	})
}

func TestASlowStreamIsGivenUpForAnotherBeforeItsFirstMessage(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Play(testserver.Receive(1), say("a"), testserver.Pause(time.Minute), say("b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF || s.waits() != "[1.1s]" {
			t.Errorf("%v, %v, waits %s", got, err, s.waits())
		}
	})
}
