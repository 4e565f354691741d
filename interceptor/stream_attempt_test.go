// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The application does nothing more after it has cancelled; then RecvMsg says what has become of it.
func TestStreamAttempt_CancelInEveryState(t *testing.T) {
	for name, row := range map[string]struct {
		retry    spec.Retry
		script   []testserver.Step
		before   func(t *testing.T, stream grpc.ClientStream)
		attempts int
	}{
		"before the first message is sent": {
			plain(),
			[]testserver.Step{testserver.Hang()},
			func(*testing.T, grpc.ClientStream) {}, 1,
		},
		"after messages, while the server is silent": {
			plain(),
			[]testserver.Step{testserver.Hang()},
			func(t *testing.T, stream grpc.ClientStream) { send(t, stream, "a", "b") }, 1,
		},
		"with an attempt that failed unseen": {
			plain(),
			[]testserver.Step{down()},
			func(t *testing.T, stream grpc.ClientStream) { send(t, stream, "a"); time.Sleep(time.Second) }, 1,
		},
		"after an attempt that was replayed": {
			plain(),
			[]testserver.Step{down(), testserver.Hang()},
			func(t *testing.T, stream grpc.ClientStream) {
				send(t, stream, "a")
				time.Sleep(time.Second)
				send(t, stream, "b")
				time.Sleep(time.Second)
			}, 2,
		},
		"after an attempt that used up its timeout": {
			hasty(),
			[]testserver.Step{testserver.Hang()},
			func(t *testing.T, stream grpc.ClientStream) { send(t, stream, "a"); time.Sleep(1050 * ms) }, 1,
		},
		"after it was committed": {
			plain(),
			[]testserver.Step{moves.Play(moves.Echo(0))},
			func(t *testing.T, stream grpc.ClientStream) {
				send(t, stream, "a")
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
					t.Error(err)
				}
			}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(row.retry), func(t *testing.T, s scene) {
				s.On(get, row.script...)
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, bidiStream)
				row.before(t, stream)
				cancel()
				s.overOnce(t, codes.Canceled, row.attempts)
				arrived := name == "with an attempt that failed unseen" // as in gRPC, RecvMsg returns the server's error then
				if _, err := receive(stream); status.Code(err) != codes.Canceled && !arrived {
					t.Errorf("RecvMsg: %v", err)
				}
				ended(t, stream)
			})
		})
	}
}

func TestStreamAttempt_CancelInBackoff(t *testing.T) {
	for name, wait := range map[string]func(stream grpc.ClientStream) error{
		"RecvMsg": func(stream grpc.ClientStream) error { return stream.RecvMsg(new(wrapperspb.StringValue)) },
		"SendMsg": func(stream grpc.ClientStream) error {
			time.Sleep(ms)                                                    // the attempt has failed
			if err := stream.SendMsg(wrapperspb.String("b")); err != io.EOF { // it waits for the backoff
				return fmt.Errorf("SendMsg: %w", err)
			}
			return stream.RecvMsg(new(wrapperspb.StringValue))
		},
		"Header": func(stream grpc.ClientStream) error {
			if md, err := stream.Header(); md != nil || err != nil {
				return fmt.Errorf("Header: %v, %w", md, err)
			}
			return stream.RecvMsg(new(wrapperspb.StringValue))
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down())
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, bidiStream)
				send(t, stream, "a")
				start := time.Now()
				time.AfterFunc(50*ms, cancel)
				err := wait(stream)
				if status.Code(err) != codes.Canceled || reasonOf(err) != policy.ReasonCancelled || time.Since(start) != 50*ms {
					t.Errorf("%v (%s) after %v; want CANCELLED after 50 ms", err, reasonOf(err), time.Since(start))
				}
				s.overOnce(t, codes.Canceled, 1)
			})
		})
	}
}

func TestStreamAttempt_ClosedInBackoff(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		start := time.Now()
		time.AfterFunc(50*ms, func() { _ = s.conn.Close() })
		_, err := receive(stream)
		if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonClosed || time.Since(start) != 50*ms {
			t.Errorf("%v (%s) after %v; want the server's error after 50 ms", err, reasonOf(err), time.Since(start))
		}
		s.overOnce(t, codes.Unavailable, 1)
	})
}

func TestStreamAttempt_ClosedAndForgotten(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		synctest.Wait()
		_ = s.conn.Close()
		s.overOnce(t, codes.Canceled, 1)
	})
}

func TestStreamAttempt_MetadataOfLastAlone(t *testing.T) {
	play(t, impatient(), func(t *testing.T, s scene) {
		s.On(get, down().Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		time.AfterFunc(50*ms, s.Down) // from now on attempts have no stream
		_, err := receive(stream)
		header, _ := stream.Header()
		if reasonOf(err) != policy.ReasonAttemptsExhausted || header != nil || stream.Trailer() != nil {
			t.Errorf("%v (%s) with header %v and trailer %v of another attempt", err, reasonOf(err), header, stream.Trailer())
		}
	})
}

// A stream can end in the moment between its opening and its first use.
func TestStreamAttempt_CancelledWhileFirstOpens(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			synctest.Wait()
			cancel()
			synctest.Wait()
			return stream
		})
		s.On(get, testserver.Hang())
		if _, err := conn.NewStream(ctx, bidiStream, get); err != nil && status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		s.overOnce(t, codes.Canceled, 1)
	})
}

func TestStreamAttempt_OptionsOfLast(t *testing.T) {
	marked := func(step testserver.Step, n string) testserver.Step {
		return step.Header(metadata.Pairs("from", n)).Trailer(metadata.Pairs("end", n))
	}
	for name, row := range map[string]struct {
		last testserver.Step
		want codes.Code
	}{
		"success": {moves.Play(moves.Receive(1), say("a")), codes.OK},
		"failure": {testserver.Fail(codes.NotFound), codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, marked(down(), "1"), marked(row.last, "2"))
				header, trailer := metadata.Pairs("stale", "x"), metadata.MD(nil)
				var p peer.Peer
				var finished []error
				stream := s.open(t, t.Context(), serverStream, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p),
					grpc.OnFinish(func(err error) { finished = append(finished, err) }))
				send(t, stream, "x")
				_, err := receive(stream)
				_, _ = receive(stream)
				if err == io.EOF {
					err = nil
				}
				if status.Code(err) != row.want || len(finished) != 1 || finished[0] != err {
					t.Errorf("%v; OnFinish was told %v", err, finished)
				}
				if got := fmt.Sprint(header["from"], header["stale"], trailer["end"], stream.Trailer()["end"]); got != "[2] [] [2] [2]" {
					t.Errorf("header and trailers: %s", got)
				}
				if p.Addr == nil {
					t.Error("no peer")
				}
			})
		})
	}
}

func TestStreamAttempt_OptionsNotOpened(t *testing.T) {
	play(t, impatient(), func(t *testing.T, s scene) {
		s.Down()
		header, p := metadata.Pairs("stale", "x"), peer.Peer{}
		var finished []error
		stream, err := s.conn.NewStream(t.Context(), serverStream, get, grpc.Header(&header), grpc.Peer(&p),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		synctest.Wait() // NewStream does not wait for callbacks
		if stream != nil || len(finished) != 1 || finished[0] != err || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v, %v; OnFinish was told %v", stream, err, finished)
		}
		if header != nil || p.Addr != nil || len(s.attempts) != 4 {
			t.Errorf("header %v, peer %v, %d attempts", header, p, len(s.attempts))
		}
	})
}

func TestStreamAttempt_Events(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), moves.Play(moves.Receive(1), say("a"), moves.Pause(time.Second)).Then(testserver.Fail(codes.Aborted)))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		_, err := receive(stream)
		var story []string
		for _, a := range s.attempts {
			story = append(story, fmt.Sprintf("%d %s %v", a.Attempt, a.Code, a.Elapsed))
		}
		for _, d := range s.decisions {
			story = append(story, fmt.Sprintf("%d %s %v", d.Attempt, d.Reason, d.Delay))
		}
		for _, c := range s.calls {
			story = append(story, fmt.Sprintf("%d %s %s %v %v", c.Attempt, c.Code, c.Reason, c.Elapsed, c.Delay))
		}
		want := "1 Unavailable 0s, 2 Unavailable 0s, 3 Aborted 1s, " +
			"1 retry 100ms, 2 retry 200ms, 3 non_retryable 0s, 3 Aborted non_retryable 1.3s 300ms"
		if got := strings.Join(story, ", "); got != want || s.calls[0].Err != err {
			t.Errorf("%s, %v;\nwant %s", got, err, want)
		}
	})
}

// TestStreamAttempt_ReleasedByGRPCsRules checks each of the four ways by which gRPC lets an application release
// a stream (grpc.ClientConn.NewStream).
func TestStreamAttempt_ReleasedByGRPCsRules(t *testing.T) {
	hangs := []testserver.Step{failing(), testserver.Hang()}
	fails := []testserver.Step{failing(), moves.Play(moves.Receive(2)).Then(down())} // not while it is sent to
	tooLarge := wrapperspb.String(string(make([]byte, 2000)))
	for name, rule := range map[string]struct {
		steps   []testserver.Step
		release func(s scene, stream grpc.ClientStream, cancel context.CancelFunc)
	}{
		"the connection is closed":        {hangs, func(s scene, _ grpc.ClientStream, _ context.CancelFunc) { _ = s.conn.Close() }},
		"its context is cancelled":        {hangs, func(_ scene, _ grpc.ClientStream, cancel context.CancelFunc) { cancel() }},
		"RecvMsg returns an error":        {fails, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = receive(stream) }},
		"RecvMsg returns its end":         {[]testserver.Step{failing(), moves.Play(moves.Receive(2))}, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = receive(stream) }},
		"Header finds the failure":        {fails, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = stream.Header() }},
		"SendMsg cannot send":             {hangs, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _ = stream.SendMsg(tooLarge) }},
		"SendMsg gets what is no message": {hangs, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _ = stream.SendMsg(7) }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				var attempts []context.Context
				s = s.within(t, func(ctx context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
					attempts = append(attempts, ctx)
					return stream
				})
				s.On(get, rule.steps...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream := s.open(t, ctx, bidiStream, grpc.MaxCallSendMsgSize(1000))
				send(t, stream, "a")
				time.Sleep(time.Second) // the first attempt has failed
				send(t, stream, "b")
				time.Sleep(time.Second) // the second has taken its place
				synctest.Wait()
				if s.retrier.Replayed() == 0 || len(s.calls) > 0 || attempts[1].Err() != nil {
					t.Fatalf("%d bytes kept, calls %+v; the stream should live", s.retrier.Replayed(), s.calls)
				}
				if attempts[0].Err() == nil {
					t.Error("the first attempt lives on beside the second")
				}
				rule.release(s, stream, cancel)
				synctest.Wait()
				if len(s.calls) != 1 || s.retrier.Replayed() != 0 {
					t.Errorf("calls %+v, %d bytes kept", s.calls, s.retrier.Replayed())
				}
				for i, ctx := range attempts {
					if ctx.Err() == nil {
						t.Errorf("attempt %d of %d lives on", i+1, len(attempts))
					}
				}
			})
		})
	}
}

// A stream whose first attempt has not been decided on is released if an inner interceptor fails by itself, or drops the options, so
// that OnFinish never comes.
func TestStreamAttempt_FirstIsReleased(t *testing.T) {
	for name, release := range map[string]func(stream grpc.ClientStream, cancel context.CancelFunc){
		"fails by itself": func(stream grpc.ClientStream, _ context.CancelFunc) { _ = stream.RecvMsg(new(wrapperspb.StringValue)) },
		"drops options":   func(_ grpc.ClientStream, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				var attempt context.Context
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
						attempt = ctx
						stream, err := open(ctx, desc, cc, method)
						return refuser{stream}, err
					}))...)
				s.On(get, testserver.Hang())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream := s.open(t, ctx, serverStream)
				send(t, stream, "a")
				release(stream, cancel)
				time.Sleep(time.Second)
				synctest.Wait()
				if attempt.Err() == nil || len(s.calls) != 1 || s.retrier.Replayed() != 0 {
					t.Errorf("attempt %v, calls %+v, %d bytes kept", attempt.Err(), s.calls, s.retrier.Replayed())
				}
			})
		})
	}
}

// refuser receives nothing.
type refuser struct{ grpc.ClientStream }

func (refuser) RecvMsg(any) error { return status.Error(codes.Aborted, "refused by an interceptor") }

// TestStreamAttempt_CancelMeetsMessage is for the race detector: the end of a stream is found while
// the message that would commit it is taken in.
func TestStreamAttempt_CancelMeetsMessage(t *testing.T) {
	t.Parallel()
	const streams = 500
	var untold sync.WaitGroup // the ends that the observer has not been told of; more of them panic
	untold.Add(streams)
	s := scene{Server: testserver.Start(t, testserver.Keep(1))}
	s.retrier = mustNew(t, mustSet(t, config(plain())),
		interceptor.WithObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.Event) { untold.Done() }}))
	s.conn = s.Dial(t, s.retrier.DialOptions()...)
	s.On(get, moves.Play(moves.Echo(0)))
	for range streams {
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "a")
		go cancel()
		got, err := receive(stream)
		if len(got) > 1 || err == nil {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if n := s.retrier.Replayed(); n != 0 {
		t.Errorf("%d bytes kept", n)
	}
	untold.Wait()
}

// An inner interceptor opens two streams with the options of one attempt, as one that retries does. The end of the first is not that of
// the attempt, and the call has what the second one brings.
func TestStreamAttempt_TwoWithItsOptions(t *testing.T) {
	for name, c := range retriedPolicies() {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
						opts ...grpc.CallOption,
					) (grpc.ClientStream, error) {
						unused, cancel := context.WithCancel(ctx)
						_, err := open(unused, desc, cc, method, opts...)
						cancel()
						if err != nil {
							return nil, err
						}
						synctest.Wait()
						return open(ctx, desc, cc, method, opts...)
					}))...)
				s.On(get, testserver.Hang(), down(), testserver.Hang(), moves.Play(moves.Receive(1), say("a")).Trailer(metadata.Pairs("of", "4")))
				var trailer metadata.MD
				var finished []error
				stream := s.open(t, t.Context(), serverStream, grpc.Trailer(&trailer), grpc.OnFinish(func(err error) { finished = append(finished, err) }))
				send(t, stream, "x")
				time.Sleep(2 * time.Second) // the application does something else
				got, err := receive(stream)
				synctest.Wait()
				if all := fmt.Sprint(got, trailer["of"], finished); all != "[a] [4] [<nil>]" || err != io.EOF || s.Count(get) != 4 {
					t.Errorf("%s, %v after %d streams", all, err, s.Count(get))
				}
			})
		})
	}
}
