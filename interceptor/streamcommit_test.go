// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
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
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// What the application has seen, or asked for, decides whether a failure may be followed by another
// attempt (gRFC A6, with headers that nobody asked for left out).
func TestAStreamIsCommittedByWhatTheApplicationHasSeen(t *testing.T) {
	from := metadata.Pairs("from", "1")
	failing := testserver.Play(testserver.Receive(1), testserver.SendHeader(from), testserver.Pause(time.Second)).Then(down())
	silent := testserver.Play(testserver.Receive(1), testserver.Pause(time.Second)).Then(down())
	for name, row := range map[string]struct {
		script testserver.Step
		on     bool // commitOn: HEADERS
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
		}, want: "1 committed"},
		"strict, nothing": {script: silent, on: true, want: "2 succeeded"},
		"strict, headers": {script: failing, on: true, want: "1 committed"},
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			if row.on {
				retry.CommitOn = policy.CommitOnHeaders
			}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, row.script, testserver.Play(testserver.Receive(1), say("a")))
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

func TestContextAndHeaderOfACommittedStreamAreOfItsAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")).Header(metadata.Pairs("from", "2")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		md, _ := metadata.FromOutgoingContext(stream.Context())
		header, err := stream.Header()
		if got := fmt.Sprint(md["grpc-previous-rpc-attempts"], header["from"], err); got != "[1] [2] <nil>" {
			t.Errorf("context, header, error: %s", got)
		}
	})
}

// A message of 100 bytes takes 105 in the buffer: with its header, before compression.
func TestABufferThatIsFullCommitsAndOneThatIsJustFilledDoesNot(t *testing.T) {
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
					testserver.Play(testserver.ReceiveAll()).Then(down()),
					testserver.Play(testserver.ReceiveAll(), say("ok")))
				stream := s.open(t, t.Context(), clientStream, row.opts...)
				for n := range 3 {
					if err := stream.SendMsg(hundred(n)); err != nil {
						t.Fatal(err)
					}
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

func TestByDefaultAStreamKeeps256KiB(t *testing.T) {
	for size, want := range map[int]policy.Reason{256<<10 - 5: policy.ReasonSucceeded, 256<<10 - 4: policy.ReasonCommitted} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down(), testserver.Play(testserver.Receive(1), say("ok")))
				stream := s.open(t, t.Context(), serverStream)
				m := wrapperspb.String("")
				for n := size; proto.Size(m) != size; n-- { // its own header takes some bytes
					m.Value = strings.Repeat("x", n)
				}
				if err := stream.SendMsg(m); err != nil {
					t.Fatal(err)
				}
				if _, err := receive(stream); s.calls[0].Reason != want {
					t.Errorf("%v: %s; want %s", err, s.calls[0].Reason, want)
				}
			})
		})
	}
}

func TestWhatIsKeptForReplayIsLetGoWhenAStreamIsCommitted(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if got := s.retrier.Replayed(); got != 8 { // two strings of one byte would take 16
			t.Errorf("%d bytes are kept; want 8", got)
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		send(t, stream, "b")
		if got := s.retrier.Replayed(); got != 0 {
			t.Errorf("%d bytes are kept after commitment", got)
		}
	})
}

func TestAStreamWithOneAttemptKeepsNothing(t *testing.T) {
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1)).Then(down()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if got := s.retrier.Replayed(); got != 0 {
			t.Errorf("%d bytes are kept", got)
		}
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 1 {
			t.Errorf("%v after %d attempts", err, s.Count(get))
		}
	})
}
