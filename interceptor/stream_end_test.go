// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
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
	"github.com/stagger-go/stagger/testserver"
)

// lateContext is a context whose Done closes some time after its deadline, as it does on a busy machine.
type lateContext struct {
	context.Context

	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// lateAfter returns a lateContext whose deadline is in d, and whose Done closes 5 ms later.
func lateAfter(t *testing.T, d time.Duration) lateContext {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(d+5*ms))
	t.Cleanup(cancel)
	return lateContext{ctx, time.Now().Add(d)}
}

// A stream whose deadline passes while RecvMsg receives its end has the same end for the application, for OnFinish and for
// observers.
func TestStreamEnd_DeadlinePassesAtTheEnd(t *testing.T) {
	for name, row := range map[string]struct {
		end  testserver.Step
		want codes.Code
	}{
		"success": {moves.Play(moves.Receive(1), say("a"), moves.Pause(501*ms)), codes.OK},
		"error":   {moves.Play(moves.Receive(1), say("a"), moves.Pause(501*ms)).Then(testserver.Fail(codes.Internal)), codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.end)
				s = s.withoutDeadline(t)
				var finished []codes.Code
				stream := s.open(t, lateAfter(t, 500*ms), serverStream, grpc.OnFinish(func(err error) { finished = append(finished, status.Code(err)) }))
				send(t, stream, "list")
				_, err := receive(stream)
				if status.Code(streamEnd(err)) != row.want || fmt.Sprint(finished) != fmt.Sprint([]codes.Code{row.want}) {
					t.Errorf("RecvMsg: %v; OnFinish was told %v", err, finished)
				}
				s.overOnce(t, row.want, 1)
			})
		})
	}
}

// A stream that succeeds without headers has ended when they were asked for: a deadline after that is too late.
func TestStreamEnd_WithoutHeaders(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		desc   *grpc.StreamDesc
	}{
		"in sequence": {config(plain()), bidiStream},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(1)))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var finished []error
				stream := s.open(t, ctx, row.desc, grpc.OnFinish(func(err error) { finished = append(finished, err) }))
				send(t, stream, "list")
				if name == "committed" {
					stream.Context()
				}
				if name != "racing" {
					_, _ = stream.Header()
					ended(t, stream)
				}
				time.Sleep(2 * time.Second)
				if _, err := receive(stream); err != io.EOF || fmt.Sprint(finished) != "[<nil>]" {
					t.Errorf("RecvMsg: %v; OnFinish was told %v", err, finished)
				}
				s.overOnce(t, codes.OK, 1)
			})
		})
	}
}

// withoutDeadline gives the scene a connection on which the server doesn't get the caller's deadline.
func (s scene) withoutDeadline(t *testing.T) scene {
	t.Helper()
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			free, cancel := context.WithCancel(context.WithoutCancel(ctx))
			context.AfterFunc(ctx, cancel)
			return open(free, desc, cc, method, opts...)
		}))...)
	return s
}

// The caller's OnFinish has run, and the incoming call knows that its call gave up, when an application's call returns the end.
// Only observers may be late.
func TestStreamEnd_BeforeItIsReturned(t *testing.T) {
	for name, c := range map[string]spec.Config{
		"in sequence": config(plain()),
		"racing":      hedged(),
		"single":      {},
	} {
		for how, step := range map[string]testserver.Step{
			"success": moves.Play(moves.Receive(1), say("a")), "failure": down(), "late failure": moves.Play(moves.Pause(ms)).Then(down()),
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				slow := interceptor.WithObserver(interceptor.Observer{
					Attempt: func(context.Context, interceptor.Event) { time.Sleep(ms) },
					CallEnd: func(context.Context, interceptor.Event) { time.Sleep(ms) },
				})
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, step)
					finished := false
					said, err := s.trailerAbove(t, false, func(ctx context.Context) error {
						stream := s.open(t, ctx, serverStream, grpc.OnFinish(func(error) { time.Sleep(10 * ms); finished = true }))
						send(t, stream, "a")
						_, err := receive(stream)
						if !finished {
							t.Error("OnFinish has not run when RecvMsg returns the end")
						}
						return streamEnd(err)
					})
					time.Sleep(time.Second) // the observers
					if gaveUp := err != nil && name != "single"; gaveUp != (len(said) > 0) {
						t.Errorf("%v; the server sends the pushback %v", err, said)
					}
				}, slow)
			})
		}
	}
}

// The caller's OnFinish may call the stream, as it may in gRPC: RecvMsg returns the end that OnFinish was told.
func TestStreamEnd_OnFinishReceives(t *testing.T) {
	failure := testserver.Fail(codes.NotFound)
	for name, c := range map[string]spec.Config{"in sequence": config(plain()), "racing": hedged(), "single": {}} {
		for when, step := range map[string]testserver.Step{
			"at once": failure, "after a message": moves.Play(moves.Receive(1), say("a"), moves.Pause(ms)).Then(failure),
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, step)
					var stream grpc.ClientStream
					ends := make(chan codes.Code, 1)
					stream = s.open(t, t.Context(), serverStream, grpc.OnFinish(func(error) {
						_, err := receive(stream)
						ends <- status.Code(err)
					}))
					send(t, stream, "a")
					if _, err := receive(stream); status.Code(err) != codes.NotFound {
						t.Error(err)
					}
					if code := <-ends; code != codes.NotFound {
						t.Errorf("RecvMsg of OnFinish returns %v", code)
					}
				})
			})
		}
	}
}

// Observers may make calls at the end of a stream: the policy's timeout ends its context after them.
func TestStreamEnd_ObserversContext(t *testing.T) {
	c := config(plain())
	c.Methods[0].Timeout = time.Hour
	breaker := &fuse{limit: 9}
	play(t, c, func(t *testing.T, s scene) {
		var over []error
		s.retrier.AddObserver(interceptor.Observer{
			CallStart: func(ctx context.Context, _ interceptor.Event) context.Context { return context.WithoutCancel(ctx) },
			CallEnd: func(ctx context.Context, _ interceptor.Event) {
				over = append(over, ctx.Err())
				context.AfterFunc(ctx, func() { over = append(over, ctx.Err()) })
			},
		})
		for _, attempts := range []int{4, 1, 1} {
			go func() { _ = exchange(t.Context(), s.conn, clientStream, get, interceptor.MaxAttempts(attempts)) }()
			if synctest.Wait(); attempts == 1 {
				breaker.limit = 0 // it refuses the last one
			}
		}
		if got := fmt.Sprint(over); got != "[<nil> context canceled <nil> context canceled <nil> context canceled]" {
			t.Errorf("at the ends of streams, and after them: %s", got)
		}
	}, withFuse(breaker))
}

// slowHeader is a stream whose headers return a second after gRPC's.
type slowHeader struct{ grpc.ClientStream }

func (s slowHeader) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	time.Sleep(time.Second)
	return md, err
}

// sends counts what an inner interceptor is given to send.
type sends struct {
	grpc.ClientStream

	n *int
}

func (s sends) SendMsg(m any) error {
	*s.n++
	return s.ClientStream.SendMsg(m)
}

// The context ends while a goroutine of ours is inside of an attempt that an inner interceptor has received to its end: the messages that it
// holds are still the application's.
func TestStreamEnd_MessagesHeldBeyondTheContext(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			h := &hoarder{ClientStream: stream, messages: make(chan string, 10)}
			go h.hoard()
			return slowHeader{h}
		})
		s.On(get, moves.Play(moves.Receive(1), say("a", "b")))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream := s.open(t, ctx, serverStream)
		send(t, stream, "list")
		_ = stream.CloseSend()
		time.Sleep(500 * ms)
		cancel()
		time.Sleep(2 * time.Second)
		if got, err := receive(stream); fmt.Sprint(got, err) != "[a b] EOF" {
			t.Errorf("the application receives %v, %v", got, err)
		}
	})
}

// The caller's OnFinish may wait for the goroutine that sends, which flow control blocks until the server ends the stream: its SendMsg returns
// without waiting for OnFinish.
func TestStreamEnd_OnFinishWaitsForTheSender(t *testing.T) {
	for name, c := range map[string]spec.Config{"single": {}, "retried": config(plain())} {
		for first, before := range map[string]moves.Move{"message": say("a"), "headers": moves.SendHeader(nil)} {
			t.Run(name+", after "+first, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, moves.Play(moves.Receive(1), before, moves.Pause(time.Second)).Then(testserver.Fail(codes.NotFound)))
					sent := make(chan struct{})
					start, waited := time.Now(), time.Duration(0)
					stream := s.open(t, t.Context(), bidiStream, grpc.OnFinish(func(error) {
						select {
						case <-sent:
						case <-time.After(time.Minute):
						}
						waited = time.Since(start)
					}))
					go func() {
						defer close(sent)
						for stream.SendMsg(wrapperspb.String(strings.Repeat("x", 50<<10))) == nil {
							continue
						}
					}()
					_, err := receive(stream)
					synctest.Wait()
					if status.Code(err) != codes.NotFound || waited != time.Second {
						t.Errorf("%v; OnFinish returns after %v; want 1s", err, waited)
					}
				})
			})
		}
	}
}
