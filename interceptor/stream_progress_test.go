// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// A RecvMsg that waits for a message which the server sends only after the application has sent more keeps no other call of the application
// waiting, whatever RecvMsg's first step comes before. `make random` meets the moments: there the lock has random delays.
func TestStreamProgress_BesideRecvMsg(t *testing.T) {
	failsFirst := []testserver.Step{moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.Receive(3), say("ok"))}
	for name, row := range map[string]struct {
		server  []testserver.Step
		prepare func(t *testing.T, stream grpc.ClientStream)
		call    func(stream grpc.ClientStream)
		opts    []grpc.CallOption
	}{
		"SendMsg finds the end of an attempt": {
			server:  failsFirst,
			prepare: func(t *testing.T, stream grpc.ClientStream) { t.Helper(); send(t, stream, "a") },
			call: func(stream grpc.ClientStream) {
				_ = stream.SendMsg(wrapperspb.String("b"))
				_ = stream.SendMsg(wrapperspb.String("c"))
			},
		},
		"a message that can't be kept waits for an attempt": {
			server: failsFirst,
			prepare: func(t *testing.T, stream grpc.ClientStream) {
				t.Helper()
				send(t, stream, "a")
				synctest.Wait()
				send(t, stream, "b") // finds the end: a goroutine of ours waits for the backoff
			},
			call: func(stream grpc.ClientStream) { _ = stream.SendMsg(wrapperspb.String(strings.Repeat("x", 200))) },
			opts: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(100)},
		},
		"Header of a committed stream": {
			server:  []testserver.Step{moves.Play(moves.SendHeader(nil), moves.Receive(1), say("ok"))},
			prepare: func(_ *testing.T, stream grpc.ClientStream) { stream.Context() },
			call: func(stream grpc.ClientStream) {
				_, _ = stream.Header()
				_ = stream.SendMsg(wrapperspb.String("b"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				for round := range 50 {
					s.Reset()
					s.On(get, row.server...)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					stream := s.open(t, ctx, bidiStream, row.opts...)
					row.prepare(t, stream)
					synctest.Wait()
					start := time.Now()
					var calls sync.WaitGroup
					calls.Go(func() { row.call(stream); _ = stream.CloseSend() })
					var got []string
					var err error
					calls.Go(func() { got, err = receive(stream) })
					calls.Wait()
					cancel()
					if took := time.Since(start); fmt.Sprint(got) != "[ok]" || err != io.EOF || took > time.Second {
						t.Fatalf("round %d: %v, %v after %v", round, got, err, took)
					}
				}
			})
		})
	}
}

// The server answers when it has all messages, at times after attempts that fail. Whatever the application does beside sending, in whatever order,
// the call ends soon, once, and nothing is held.
func TestStreamProgress_AnyOrder(t *testing.T) {
	for name, c := range map[string]spec.Config{"retried": config(plain()), "replaced": config(hasty())} {
		for _, hides := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, options hidden %v", name, hides), func(t *testing.T) {
				f, p := &fuse{limit: 1 << 30}, &purse{grants: 1 << 30}
				paid(c)
				play(t, c, func(t *testing.T, s scene) {
					s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
						func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
							if hides {
								opts = nil
							}
							return open(ctx, desc, cc, method, opts...)
						}))...)
					for round := range 40 {
						what := s.progress(t)
						time.Sleep(2 * time.Second)
						if left := held(s.retrier, f, p); left != "" || s.retrier.Replayed() != 0 {
							what += fmt.Sprintf(" held: %s, %d bytes", left, s.retrier.Replayed())
						}
						if what != "" {
							t.Fatalf("round %d: %s", round, what)
						}
					}
				}, withFuse(f), interceptor.WithBudget("", forAll(p)))
			})
		}
	}
}

// progress plays a random stream, and returns what is wrong with it, or "".
func (s scene) progress(t *testing.T) string {
	t.Helper()
	some := func(n int) time.Duration { return time.Duration(rand.IntN(n)) * ms }
	s.Reset()
	var steps []testserver.Step
	for range rand.IntN(3) {
		steps = append(steps, moves.Play(moves.Receive(rand.IntN(4)), moves.Pause(some(5))).Then(down()))
	}
	steps = append(steps, moves.Play(moves.Receive(5), moves.SendHeader(nil), moves.Pause(some(3)), say("ok"), moves.Receive(0)))
	s.On(get, steps...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	finished, padding := 0, ""
	opts := []grpc.CallOption{grpc.OnFinish(func(error) { finished++ })}
	if rand.IntN(2) == 0 {
		opts = append(opts, grpc.MaxRetryRPCBufferSize(150))
		padding = strings.Repeat("x", rand.IntN(2)*90)
	}
	stream := s.open(t, ctx, bidiStream, opts...)
	start := time.Now()
	var calls sync.WaitGroup
	beside := func(call func()) {
		after := some(3) * 20
		calls.Go(func() { time.Sleep(after); call() })
	}
	pauses := []time.Duration{some(60), 0, some(60), some(60), 0}
	calls.Go(func() {
		for i, pause := range pauses {
			if err := stream.SendMsg(wrapperspb.String(fmt.Sprint(i, padding))); err != nil {
				return
			}
			time.Sleep(pause)
		}
		_ = stream.CloseSend()
	})
	var got []string
	var err error
	beside(func() { got, err = receive(stream) })
	if rand.IntN(2) == 0 {
		beside(func() { _, _ = stream.Header() })
	}
	if rand.IntN(4) == 0 {
		beside(func() { stream.Context() })
	}
	calls.Wait()
	took := time.Since(start)
	done := fmt.Sprint(got) == "[ok]" && err == io.EOF || reasonOf(err) == "committed"
	if !done || took > 10*time.Second || finished != 1 {
		return fmt.Sprintf("%v, %v after %v, OnFinish %d times", got, err, took, finished)
	}
	return ""
}
