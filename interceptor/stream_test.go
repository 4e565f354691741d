// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
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
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/inspect"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

var (
	serverStream = &grpc.StreamDesc{ServerStreams: true}
	clientStream = &grpc.StreamDesc{ClientStreams: true}
	bidiStream   = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
)

// ends returns the results of the attempts, in the order of sending.
func (s scene) ends() string {
	var list []string
	for _, e := range s.attempts {
		list = append(list, fmt.Sprintf("%d %s", e.Attempt, placeOf(e)))
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// described makes the types of GetOrder known to the Retrier, as linked generated code does.
func described(t *testing.T) interceptor.Option {
	t.Helper()
	text := new(".google.protobuf.StringValue")
	return interceptor.WithDescriptors(mustFiles(t, protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
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
func (s scene) open(t *testing.T, ctx context.Context, desc *grpc.StreamDesc, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	return must.Get(s.conn.NewStream(ctx, desc, get, opts...))(t)
}

func send(t *testing.T, stream grpc.ClientStream, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := stream.SendMsg(wrapperspb.String(text)); err != nil {
			t.Fatalf("SendMsg(%s): %v", text, err)
		}
	}
}

// receive returns the messages and the end of a stream.
func receive(stream grpc.ClientStream) (texts []string, err error) {
	for {
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil {
			return texts, err
		}
		texts = append(texts, m.GetValue())
	}
}

func say(texts ...string) moves.Move {
	var messages []proto.Message
	for _, text := range texts {
		messages = append(messages, wrapperspb.String(text))
	}
	return moves.Send(messages...)
}

// heard returns the messages that the server received in its n-th attempt, from 0.
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

func TestStream_NotOpened(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(500*ms, s.Up)
		time.AfterFunc(600*ms, s.conn.ResetConnectBackoff)
		s.On(get, moves.Play(moves.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// heardBy returns the messages that the server received in every attempt.
func (s scene) heardBy() (all []string) {
	synctest.Wait()
	for n, a := range s.Attempts() {
		heard := fmt.Sprint(s.heard(n))
		if inspect.HalfClosed(a) {
			heard += "."
		}
		all = append(all, heard)
	}
	return all
}

// overOnce reports whether the only call has ended once, with a code and no wait.
func (s scene) overOnce(t *testing.T, want codes.Code, attempts int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 || s.calls[0].Code != want || s.Count(get) != attempts || s.retrier.Replayed() != 0 {
		t.Errorf("%d attempts, %d bytes kept, calls %+v; want one with %s after %d attempts",
			s.Count(get), s.retrier.Replayed(), s.calls, want, attempts)
	}
}

// kinds are the three kinds of streams.
func kinds() map[string]*grpc.StreamDesc {
	return map[string]*grpc.StreamDesc{"server": serverStream, "client": clientStream, "bidi": bidiStream}
}

// whole makes a stream with one message each way, and returns its messages, its end and its duration.
func (s scene) whole(t *testing.T, desc *grpc.StreamDesc, opts ...grpc.CallOption) (got string, took time.Duration, err error) {
	t.Helper()
	start := time.Now()
	stream := s.open(t, t.Context(), desc, opts...)
	send(t, stream, "x")
	_ = stream.CloseSend()
	texts, err := receive(stream)
	took = time.Since(start)
	synctest.Wait() // observers are told by whoever has ended the call, and RecvMsg does not wait for them
	return fmt.Sprint(texts), took, err
}

// inside dials with an interceptor inside the Retrier's: it wraps the stream of the n-th attempt, from 1.
func (s scene) inside(t *testing.T, wrap func(n int, stream grpc.ClientStream) grpc.ClientStream) *grpc.ClientConn {
	t.Helper()
	return s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream { return wrap(n, stream) }).conn
}

func TestStream_Disable(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream, interceptor.Disable())
		send(t, stream, "x")
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 1 || len(s.calls) != 0 {
			t.Errorf("%v after %d attempts, calls %+v", err, s.Count(get), s.calls)
		}
	})
}

// within gives the scene a connection on which inner sees each attempt n of a stream, from 1.
func (s scene) within(t *testing.T, inner func(ctx context.Context, n int, stream grpc.ClientStream) grpc.ClientStream) scene {
	t.Helper()
	n := 0
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			n++
			return inner(ctx, n, stream), nil
		}))...)
	return s
}

// failing takes a message and fails.
func failing() testserver.Step { return moves.Play(moves.Receive(1)).Then(down()) }

// Without retries, no message is kept, but that is not the reason for the end.
func TestStream_OneAttemptExhausted(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"by policy": nil, "by the call": {interceptor.MaxAttempts(1)}} {
		t.Run(name, func(t *testing.T) {
			c := spec.Config{}
			if options != nil {
				c = config(plain())
			}
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(1)).Then(down()))
				stream := s.open(t, t.Context(), bidiStream, options...)
				send(t, stream, "a")
				if got := s.retrier.Replayed(); got != 0 {
					t.Errorf("%d bytes are kept", got)
				}
				_, err := receive(stream)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil || e.Reason == policy.ReasonCommitted || e.Commit != "" || status.Code(err) != codes.Unavailable {
					t.Errorf("%v, %+v", err, e)
				}
			})
		})
	}
}

func TestStream_Compressed(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(0)).Then(down()), moves.Play(moves.Echo(0)))
		p := new(payloads)
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithStatsHandler(p))...)
		stream := must.Get(conn.NewStream(t.Context(), bidiStream, get, grpc.UseCompressor(gzip.Name)))(t)
		long := strings.Repeat("long ", 10_000) // 50 KB, in gRPC's own buffers
		send(t, stream, long, "short", long)
		_ = stream.CloseSend()
		got, err := receive(stream)
		if err != io.EOF || len(got) != 3 || got[0] != long || got[1] != "short" || got[2] != long {
			t.Errorf("%d messages, %v", len(got), err)
		}
		if p.squeezed != 4 || len(p.sent) != 6 {
			t.Errorf("%d of %d messages were compressed; want two of three in each of two attempts", p.squeezed, len(p.sent))
		}
	})
}

// payloads is a stats handler that records sent messages, and the results of attempts.
type payloads struct {
	mu   sync.Mutex // guards all
	sent []any
	ends []codes.Code

	squeezed int // messages that compression has made smaller by half
}

func (*payloads) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*payloads) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*payloads) HandleConn(context.Context, stats.ConnStats) {}

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
