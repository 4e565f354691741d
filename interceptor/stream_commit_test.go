// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Whether a failure may be retried depends on what the application has seen or requested (gRFC A6, except headers that
// it has not requested).
func TestStreamCommit(t *testing.T) {
	from := metadata.Pairs("from", "1")
	failing := moves.Play(moves.Receive(1), moves.SendHeader(from), moves.Pause(time.Second)).Then(down())
	silent := moves.Play(moves.Receive(1), moves.Pause(time.Second)).Then(down())
	for name, row := range map[string]struct {
		script testserver.Step
		look   func(stream grpc.ClientStream)
		want   string
	}{
		"nothing seen":   {script: silent, want: "2 succeeded"},
		"headers unseen": {script: failing, want: "2 succeeded"},
		"headers seen":   {script: failing, look: func(s grpc.ClientStream) { _, _ = s.Header() }, want: "1 committed"},
		"context seen":   {script: silent, look: func(s grpc.ClientStream) { s.Context() }, want: "1 committed"},
		"trailer seen": {script: silent, look: func(s grpc.ClientStream) {
			time.Sleep(2 * time.Second)
			synctest.Wait() // gRPC allows Trailer only then
			s.Trailer()
		}, want: "2 succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.script, moves.Play(moves.Receive(1), say("a")))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				if row.look != nil {
					row.look(stream)
				}
				_, _ = receive(stream)
				if got := fmt.Sprint(s.Count(get), " ", s.calls[0].Reason); got != row.want {
					t.Errorf("%s; want %s", got, row.want)
				}
			})
		})
	}
}

// A message of 100 bytes takes 105 in the buffer: with its header, before compression.
func TestStreamCommit_BufferLimits(t *testing.T) {
	hundred := func(n int) proto.Message { return wrapperspb.String(strings.Repeat(fmt.Sprint(n), 98)) }
	for name, row := range map[string]struct {
		opts    []grpc.CallOption
		options []interceptor.Option
		want    string
	}{
		"at the limit of the call":       {[]grpc.CallOption{grpc.MaxRetryRPCBufferSize(315)}, nil, "2 attempts, 3 heard, succeeded"},
		"one byte over the limit":        {[]grpc.CallOption{grpc.MaxRetryRPCBufferSize(314)}, nil, "1 attempts, 3 heard, committed"},
		"at the limit of the Retrier":    {nil, []interceptor.Option{interceptor.WithMaxReplayBytes(315)}, "2 attempts, 3 heard, succeeded"},
		"one byte over the Retrier's":    {nil, []interceptor.Option{interceptor.WithMaxReplayBytes(314)}, "1 attempts, 3 heard, committed"},
		"nothing may be kept":            {[]grpc.CallOption{grpc.MaxRetryRPCBufferSize(0)}, nil, "1 attempts, 3 heard, committed"},
		"nothing may be kept by anybody": {nil, []interceptor.Option{interceptor.WithMaxReplayBytes(0)}, "1 attempts, 3 heard, committed"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get,
					moves.Play(moves.Receive(0)).Then(down()),
					moves.Play(moves.Receive(0), say("ok")))
				stream := s.open(t, t.Context(), clientStream, row.opts...)
				for n := range 3 {
					must.Do(t, stream.SendMsg(hundred(n)))
				}
				_ = stream.CloseSend()
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				last := s.Attempts()[s.Count(get)-1]
				got := fmt.Sprintf("%d attempts, %d heard, %s", s.Count(get), last.Received, s.calls[0].Reason)
				if got != row.want || (err == nil) != (s.calls[0].Reason == policy.ReasonSucceeded) {
					t.Errorf("%s, %v; want %s", got, err, row.want)
				}
				for n, data := range last.Requests {
					want, _ := proto.Marshal(hundred(n))
					if string(data) != string(want) {
						t.Errorf("message %d is %s", n, data)
					}
				}
				if s.retrier.Replayed() != 0 {
					t.Errorf("%d bytes are kept after the end", s.retrier.Replayed())
				}
			}, row.options...)
		})
	}
}

func TestStreamCommit_DefaultLimit(t *testing.T) {
	for size, want := range map[int]policy.Reason{256<<10 - 5: policy.ReasonSucceeded, 256<<10 - 4: policy.ReasonCommitted} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down(), moves.Play(moves.Receive(1), say("ok")))
				stream := s.open(t, t.Context(), serverStream)
				m := wrapperspb.String("")
				for n := size; proto.Size(m) != size; n-- { // its own header takes some bytes
					m.Value = strings.Repeat("x", n)
				}
				must.Do(t, stream.SendMsg(m))
				if _, err := receive(stream); s.calls[0].Reason != want {
					t.Errorf("%v: %s; want %s", err, s.calls[0].Reason, want)
				}
			})
		})
	}
}

func TestStreamCommit_LetsGo(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), moves.Play(moves.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if got := s.retrier.Replayed(); got != 8 { // two strings of one byte would take 16
			t.Errorf("%d bytes are kept; want 8", got)
		}
		must.Do(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		synctest.Wait()
		send(t, stream, "b")
		if got := s.retrier.Replayed(); got != 0 {
			t.Errorf("%d bytes are kept after commitment", got)
		}
	})
}

// prepared is a message whose bytes only gRPC knows. It is prepared with another stream: that alone
// commits the stream that a message is prepared with.
func (s scene) prepared(t *testing.T) *grpc.PreparedMsg {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.On(other, testserver.Hang())
	stream := must.Get(s.conn.NewStream(ctx, bidiStream, other, interceptor.Disable()))(t)
	p := new(grpc.PreparedMsg)
	must.Do(t, p.Encode(stream, wrapperspb.String("prepared")))
	return p
}

// committedBy checks how the only attempt of a stream has ended, and what has committed it, wherever that
// is told.
func (s scene) committedBy(t *testing.T, err error, want decision.Commit) {
	t.Helper()
	synctest.Wait() // the application's calls do not wait for observers
	e, ok := errors.AsType[*interceptor.Error](err)
	if !ok || e.Reason != policy.ReasonCommitted || e.Commit != string(want) || e.Attempts != 1 {
		t.Errorf("%v, %+v; want one attempt, committed by %q", err, e, want)
	}
	if d := s.decisions[len(s.decisions)-1]; d.Reason != policy.ReasonCommitted {
		t.Errorf("the decision is %+v; want committed by %q", d, want)
	}
}

func TestStreamCommit_Detail(t *testing.T) {
	var (
		message  = func(stream grpc.ClientStream, _ any) { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }
		headers  = func(stream grpc.ClientStream, _ any) { _, _ = stream.Header() }
		origin   = func(stream grpc.ClientStream, _ any) { stream.Context() }
		trailer  = func(stream grpc.ClientStream, _ any) { stream.Trailer() }
		much     = func(stream grpc.ClientStream, _ any) { _ = stream.SendMsg(wrapperspb.String("a")) }
		prepared = func(stream grpc.ClientStream, p any) { _ = stream.SendMsg(p) }
	)
	type looks []func(stream grpc.ClientStream, prepared any)
	for name, row := range map[string]struct {
		looks looks
		want  decision.Commit
	}{
		"a message":                  {looks{message}, decision.CommitMessage},
		"headers":                    {looks{headers}, decision.CommitHeaders},
		"the context":                {looks{origin}, decision.CommitContext},
		"the trailer, too early":     {looks{trailer, origin}, decision.CommitContext},
		"a full buffer":              {looks{much}, decision.CommitBufferFull},
		"a prepared message":         {looks{prepared}, decision.CommitPreparedMessage},
		"the context before all":     {looks{origin, headers, trailer, much, prepared, message}, decision.CommitContext},
		"headers before a message":   {looks{headers, message}, decision.CommitHeaders},
		"a message before headers":   {looks{message, headers}, decision.CommitMessage},
		"a buffer before a message":  {looks{much, message}, decision.CommitBufferFull},
		"a message, then a buffer":   {looks{message, much}, decision.CommitMessage},
		"prepared, then the context": {looks{prepared, origin}, decision.CommitPreparedMessage},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.SendHeader(metadata.Pairs("k", "v")), say("a"), moves.Pause(time.Second)).Then(down()))
				p := s.prepared(t)
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
				for _, look := range row.looks {
					look(stream, p)
				}
				_, err := receive(stream)
				s.committedBy(t, err, row.want)
			})
		})
	}
}

// refusing is an attempt that sends nothing, for a reason that another one might not have.
type refusing struct{ grpc.ClientStream }

func (refusing) SendMsg(any) error { return status.Error(codes.Unavailable, "refused") }

func TestStreamCommit_Unsendable(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return refusing{stream} })
		stream := must.Get(conn.NewStream(t.Context(), bidiStream, get))(t)
		s.committedBy(t, stream.SendMsg(wrapperspb.String("a")), decision.CommitUnsendable)
	})
}
