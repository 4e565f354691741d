// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestStreamHeader_ThroughAllAttempts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		start := time.Now()
		md, err := stream.Header()
		if md != nil || err != nil || s.Count(get) != 4 || time.Since(start) != 700*ms {
			t.Errorf("%v, %v after %d attempts and %v; want no headers after 4 and 700 ms", md, err, s.Count(get), time.Since(start))
		}
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	})
}

func TestStreamHeader_Hedged(t *testing.T) {
	brings := func(after time.Duration, name string) testserver.Step {
		return moves.Play(moves.Pause(after), moves.SendHeader(metadata.Pairs("who", name)),
			moves.Pause(time.Second), say(name))
	}
	for name, row := range map[string]struct {
		ask           time.Duration // when the header is asked for
		first, second testserver.Step
		want, sent    string
	}{
		"that are not there yet":     {0, testserver.Hang(), brings(50*ms, "2"), "[2]", "[0s 100ms]"},
		"of the only attempt":        {0, brings(50*ms, "1"), brings(0, "2"), "[1]", "[0s]"},
		"nobody waits for the first": {90 * ms, brings(150*ms, "1"), brings(0, "2"), "[1]", "[0s]"},
		"after a failure":            {0, down().Delay(20 * ms), brings(50*ms, "2"), "[2]", "[0s 20ms]"},
		"and the first comes first":  {0, brings(120*ms, "1"), brings(50*ms, "2"), "[1]", "[0s 100ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(func(h *spec.Hedge) { h.MaxAttempts = 2 }), func(t *testing.T, s scene) {
				s.On(get, row.first, row.second)
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				time.Sleep(row.ask)
				md, err := stream.Header()
				if fmt.Sprint(md["who"]) != row.want || err != nil {
					t.Fatalf("headers %v, %v", md, err)
				}
				time.Sleep(100 * ms) // no other attempt is sent
				got, err := receive(stream)
				if fmt.Sprint(got) != row.want || err != io.EOF || s.sent() != row.sent {
					t.Errorf("%v, %v, sent %s", got, err, s.sent())
				}
			})
		})
	}
}

// hastyHeader has no headers, and does not say why: gRPC's Header does so if the response has come, and its status has not.
type hastyHeader struct{ grpc.ClientStream }

func (h hastyHeader) Header() (md metadata.MD, err error) {
	_, _ = h.ClientStream.Header()
	return md, err
}

// A call that asks for headers before anything else is retried after attempts that end without, whatever Header knows of
// their ends.
func TestStreamHeader_StatusUnknown(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(attempt int, stream grpc.ClientStream) grpc.ClientStream {
			if attempt%3 == 0 {
				return stream
			}
			return hastyHeader{stream}
		})
		for name, ask := range map[string]func(grpc.ClientStream){
			"Header": func(stream grpc.ClientStream) {
				if md, err := stream.Header(); md == nil || err != nil {
					t.Errorf("Header: %v, %v", md, err)
				}
			},
			"RecvMsg": func(grpc.ClientStream) {},
		} {
			s.Reset()
			s.On(get, down(), down(), text("a"))
			stream := s.open(t, t.Context(), serverStream)
			send(t, stream, "x")
			ask(stream)
			if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF || s.Count(get) != 3 {
				t.Errorf("%s: %v, %v after %d attempts; want [a] after 3", name, got, err, s.Count(get))
			}
		}
	})
}

// lateHeader has something done between the headers of an attempt and their delivery.
type lateHeader struct {
	grpc.ClientStream

	then func()
}

func (l *lateHeader) Header() (metadata.MD, error) {
	md, err := l.ClientStream.Header()
	l.then()
	return md, err
}

// A call is cancelled while its headers are on their way to us and its message lies with gRPC. Once RecvMsg has returned
// the end, that message counts for no call. Many calls, since RecvMsg may also get it before.
func TestStreamHeader_MessageLeftAtTheEnd(t *testing.T) {
	play(t, hedged(func(h *spec.Hedge) { h.HedgingDelay = time.Hour }), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			return &lateHeader{stream, func() { time.Sleep(300 * ms) }}
		})
		s.On(get, moves.Play(moves.Receive(1), say("a"), moves.Pause(time.Hour)))
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			stream := s.open(t, ctx, bidiStream)
			send(t, stream, "x")
			stream.Context()
			time.AfterFunc(200*ms, cancel)
			got, err := receive(stream)
			if again := stream.RecvMsg(new(wrapperspb.StringValue)); len(got) > 1 || status.Code(err) != codes.Canceled || again != err {
				t.Fatalf("%v, %v, then %v", got, err, again)
			}
		}
	})
}

// Header beside a RecvMsg returns as soon as there are headers, as in gRPC, though no message has come.
func TestStreamHeader_BesideReceiverAndContext(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), moves.SendHeader(metadata.Pairs("who", "1")), moves.Pause(10*time.Second), say("a")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		start := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) })
		calls.Go(func() { time.Sleep(time.Second); stream.Context() })
		time.Sleep(ms)
		md, err := stream.Header()
		if fmt.Sprint(md["who"], err) != "[1] <nil>" || time.Since(start) > 2*ms {
			t.Errorf("%v, %v after %v", md, err, time.Since(start))
		}
		calls.Wait()
		_, _ = receive(stream)
	})
}

// Header waits beside a SendMsg that finds out how an attempt has ended. When that returns, Header makes the next attempt.
func TestStreamHeader_BesideSender(t *testing.T) {
	slowObserver := interceptor.WithObserver(interceptor.Observer{Attempt: func(context.Context, interceptor.Event) { time.Sleep(time.Second) }})
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1)).Then(testserver.Fail(codes.Unavailable)), moves.Play(moves.SendHeader(metadata.Pairs("who", "2"))).Then(testserver.Hang()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		synctest.Wait()
		start := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() { send(t, stream, "y") })
		time.Sleep(ms)
		md, err := stream.Header()
		if took := time.Since(start); fmt.Sprint(md["who"], err) != "[2] <nil>" || took != time.Second {
			t.Errorf("Header returns %v, %v after %v", md, err, took)
		}
		calls.Wait()
		cancel()
		time.Sleep(10 * time.Second) // the observer is told of the end
	}, slowObserver)
}

// cachedStream is an inner interceptor's answer without gRPC: no headers, and two messages.
type cachedStream struct {
	ctx  context.Context
	left int
}

func (*cachedStream) Header() (md metadata.MD, err error) { return md, err }
func (*cachedStream) Trailer() metadata.MD                { return nil }
func (*cachedStream) CloseSend() error                    { return nil }
func (c *cachedStream) Context() context.Context          { return c.ctx }
func (*cachedStream) SendMsg(any) error                   { return nil }

func (c *cachedStream) RecvMsg(m any) error {
	if c.left == 0 {
		return io.EOF
	}
	c.left--
	if text, ok := m.(*wrapperspb.StringValue); ok {
		text.Value = "cached"
	}
	return nil
}
