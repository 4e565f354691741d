// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/budget"
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

// What commits a stream need not be an answer: one that comes late pays nothing back.
func TestAnAnswerIsLateOrNotWhateverHasCommittedItsStream(t *testing.T) {
	for name, row := range map[string]struct {
		takes time.Duration
		look  func(stream grpc.ClientStream)
		want  int // extra attempts that are paid back
	}{
		"in time":                     {500 * ms, func(grpc.ClientStream) {}, 1},
		"in time, context asked for":  {500 * ms, func(s grpc.ClientStream) { s.Context() }, 1},
		"late, context asked for":     {2 * time.Second, func(s grpc.ClientStream) { s.Context() }, 0},
		"late, headers came in time":  {2 * time.Second, func(s grpc.ClientStream) { _, _ = s.Header() }, 1},
		"late, the buffer was filled": {2 * time.Second, func(s grpc.ClientStream) { _ = s.SendMsg(wrapperspb.String("a")) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			retry := hasty()
			retry.Budget = ""
			p := &purse{Budget: budget.Unlimited, grants: 9}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, testserver.Play().Then(down()), testserver.Play(testserver.SendHeader(nil), testserver.Pause(row.takes), say("a")))
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
				time.AfterFunc(200*ms, func() { row.look(stream) }) // of the second attempt
				if got, err := receive(stream); len(got) != 1 || p.refunded != row.want {
					t.Errorf("%v, %v; the budget: %s; want %d refunded", got, err, p, row.want)
				}
			}, interceptor.WithBudget("", p))
		})
	}
}

func TestAMessageThatCameEarlyAndCannotBeDecodedEndsTheStreamAsInGRPC(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"bidi": bidiStream, "client": clientStream} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.SendRaw([]byte{0xff})))
				stream := s.open(t, t.Context(), desc)
				synctest.Wait()
				if err := stream.SendMsg(wrapperspb.String("a")); err != io.EOF {
					t.Fatalf("SendMsg: %v; want EOF, since the stream has ended", err)
				}
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				if status.Code(err) != codes.Internal || !strings.HasPrefix(status.Convert(err).Message(), "grpc: failed to unmarshal the received message: ") {
					t.Errorf("%v; want gRPC's error", err)
				}
				synctest.Wait()
				if got := fmt.Sprint(s.Count(get), len(s.calls), s.retrier.Replayed()); got != "1 1 0" {
					t.Errorf("attempts, ends and bytes kept: %s; want one, one and none", got)
				}
			}, described(t))
		})
	}
}

// A client stream can bring its reply and then fail. gRPC has then decoded the reply already, and a
// codec that adds to what it finds would mix it with that of the next attempt.
func TestAReplyThatAFailedAttemptOfAStreamFilledIsEmptied(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.ReceiveAll(), testserver.SendRaw([]byte("bad"))).Then(down()),
			testserver.Play(testserver.ReceiveAll(), testserver.SendRaw([]byte("good"))))
		stream := s.open(t, t.Context(), clientStream, grpc.ForceCodec(notes{"forced"}))
		if err := stream.SendMsg(&note{"a"}); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		reply := new(note)
		if err := stream.RecvMsg(reply); err != nil || reply.text != "good" || s.Count(get) != 2 {
			t.Errorf("%q, %v after %d attempts", reply.text, err, s.Count(get))
		}
	})
}

// attemptScript is what the server does in one attempt.
type attemptScript struct {
	moves []string // "receive", "send", "receive all", "pause"; "headers" first
	end   string   // "ok", "fail", "hang", "drop", "cut"
}

func (a attemptScript) String() string {
	return strings.Join(append(slices.Clone(a.moves), a.end), "/")
}

// drawAttempts makes the scripts of up to 4 attempts; the last goes on forever.
func drawAttempts(t *rapid.T, desc *grpc.StreamDesc) (list []attemptScript) {
	moves := []string{"receive", "receive", "send", "receive all", "pause"}
	if !desc.ServerStreams {
		moves = []string{"receive", "receive all", "pause"} // its one message comes with its end
	}
	for range rapid.IntRange(1, 4).Draw(t, "attempts") {
		a := attemptScript{
			moves: rapid.SliceOfN(rapid.SampledFrom(moves), 0, 5).Draw(t, "moves"),
			end:   rapid.SampledFrom([]string{"fail", "fail", "fail", "ok", "ok", "hang", "drop", "cut"}).Draw(t, "end"),
		}
		if a.end == "ok" && !desc.ServerStreams {
			a.moves = append(a.moves, "send")
		}
		if rapid.IntRange(0, 3).Draw(t, "headers") == 0 {
			a.moves = append([]string{"headers"}, a.moves...)
		}
		list = append(list, a)
	}
	return list
}

// script is what the server does in attempt n, from 1.
func (m *model) script(n int) attemptScript {
	return m.attempts[min(max(n, 1), len(m.attempts))-1]
}

// sent is what the application sees of attempt n, if that is the one.
func (a attemptScript) sent(n int) (texts []string) {
	for _, move := range a.moves {
		if move == "send" {
			texts = append(texts, fmt.Sprintf("attempt %d message %d", n, len(texts)))
		}
	}
	return texts
}

// steps are the attempts for the server; the last is written out as often as a call may reach it, so
// that each of its attempts has messages of its own.
func steps(attempts []attemptScript) (list []testserver.Step) {
	for n := 1; n <= 5; n++ {
		list = append(list, attempts[min(n, len(attempts))-1].step(n))
	}
	return list
}

func (a attemptScript) step(n int) testserver.Step {
	var moves []testserver.Move
	texts := a.sent(n)
	for _, move := range a.moves {
		switch move {
		case "headers":
			moves = append(moves, testserver.SendHeader(metadata.Pairs("attempt", fmt.Sprint(n))))
		case "receive":
			moves = append(moves, testserver.Receive(1))
		case "receive all":
			moves = append(moves, testserver.ReceiveAll())
		case "pause":
			moves = append(moves, testserver.Pause(400*ms))
		case "send":
			moves = append(moves, say(texts[0]))
			texts = texts[1:]
		}
	}
	switch a.end {
	case "fail":
		return testserver.Play(moves...).Then(down())
	case "hang":
		return testserver.Play(moves...).Then(testserver.Hang())
	case "drop":
		return testserver.Play(moves...).Then(testserver.Drop())
	case "cut":
		return testserver.Play(append(moves, testserver.Cut())...)
	}
	return testserver.Play(moves...)
}

// payloads is a stats handler that keeps what is sent, and how attempts end.
type payloads struct {
	mu   sync.Mutex // guards all
	sent []any
	ends []codes.Code

	squeezed int // messages that compression has made smaller by half
}

func (*payloads) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*payloads) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*payloads) HandleConn(context.Context, stats.ConnStats)                       {}

func (p *payloads) HandleRPC(_ context.Context, e stats.RPCStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case *stats.OutPayload:
		p.sent = append(p.sent, e.Payload)
		if 2*e.CompressedLength < e.Length {
			p.squeezed++
		}
	case *stats.End:
		p.ends = append(p.ends, status.Code(e.Error))
	}
}

func TestAStatsHandlerSeesTheMessageAndTheEndOfEveryAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		p := new(payloads)
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithStatsHandler(p))...)
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream, err := conn.NewStream(t.Context(), serverStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		first, ok := p.sent[0].(proto.Message)
		if !ok || !proto.Equal(first, wrapperspb.String("x")) || len(p.sent) != 2 || fmt.Sprint(p.ends) != "[Unavailable OK]" {
			t.Errorf("sent %v, ends %v", p.sent, p.ends)
		}
	})
}
