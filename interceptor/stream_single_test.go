// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// singles are the ways in which a stream has one attempt at most.
func singles() map[string]func() (spec.Config, []interceptor.Option) {
	return map[string]func() (spec.Config, []interceptor.Option){
		"no policy": func() (spec.Config, []interceptor.Option) { return spec.Config{}, nil },
		"mode OFF": func() (spec.Config, []interceptor.Option) {
			c := config(plain())
			c.Mode = "OFF"
			return c, nil
		},
		"a timeout": func() (spec.Config, []interceptor.Option) {
			return spec.Config{Methods: []spec.MethodConfig{{
				Names: []string{"/acme.orders.v1.OrderService/"}, Policy: spec.Policy{Timeout: time.Hour},
			}}}, nil
		},
	}
}

// outsideOf returns an application's view of a stream.
type outsideOf struct {
	got      []string
	end      error
	trailer  []string
	finished []codes.Code
}

// A server has answered whole before its slow reader's deadline passes, before it cancels, or closes the connection:
// what gRPC has received, and the end, reach the application as without a Retrier.
func TestStreamSingle_SlowReader(t *testing.T) {
	ways := map[string]codes.Code{"deadline": codes.DeadlineExceeded, "cancel": codes.Canceled, "close": codes.Canceled}
	all := singles()
	for name, c := range retriedPolicies() {
		all[name] = func() (spec.Config, []interceptor.Option) { return c, nil }
	}
	for name, of := range all {
		for way, code := range ways {
			for kind, desc := range kinds() {
				t.Run(name+"/"+way+"/"+kind, func(t *testing.T) {
					c, options := of()
					play(t, c, func(t *testing.T, s scene) {
						answer := say("a", "b", "c")
						if !desc.ServerStreams {
							answer = say("a")
						}
						s.On(get, faults.Play(faults.Receive(1), answer).Trailer(metadata.Pairs("end", "1")))
						bare := s.slowly(t, s.Dial(t), way, desc)
						ours := s.slowly(t, s.Dial(t, s.retrier.DialOptions()...), way, desc)
						if fmt.Sprint(ours) != fmt.Sprint(bare) || bare.end != io.EOF {
							t.Errorf("%v; bare gRPC %v", ours, bare)
						}
						s.overOnce(t, code, 2)
					}, options...)
				})
			}
		}
	}
}

// slowly makes a stream whose answer has come whole when its call ends in the given way, and only then receives.
func (s scene) slowly(t *testing.T, conn *grpc.ClientConn, way string, desc *grpc.StreamDesc) (seen outsideOf) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stream := testkit.Must(conn.NewStream(ctx, desc, get, grpc.OnFinish(func(err error) { seen.finished = append(seen.finished, status.Code(err)) })))(t)
	send(t, stream, "x")
	_ = stream.CloseSend()
	synctest.Wait()
	switch way {
	case "deadline":
		time.Sleep(time.Second)
	case "cancel":
		cancel()
	case "close":
		_ = conn.Close()
	}
	synctest.Wait()
	for seen.end == nil {
		m := new(wrapperspb.StringValue)
		if seen.end = stream.RecvMsg(m); seen.end == nil {
			seen.got = append(seen.got, m.GetValue())
			if !desc.ServerStreams {
				seen.end = io.EOF
			}
		}
	}
	seen.trailer = stream.Trailer()["end"]
	return seen
}

// After the deadline, RecvMsg still returns a server's error that arrived before it.
func TestStreamSingle_ErrorAfterDeadline(t *testing.T) {
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), say("a")).Then(testserver.Fail(codes.NotFound)))
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		synctest.Wait()
		cancel()
		synctest.Wait()
		got, err := receive(stream)
		_, again := receive(stream)
		if fmt.Sprint(got) != "[a]" || status.Code(err) != codes.NotFound || again.Error() != err.Error() || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%v, %v (%s), then %v", got, err, reasonOf(err), again)
		}
	})
}

// RecvMsg that follows an error returns what gRPC's does, even if that has the code of the first.
func TestStreamSingle_AnotherError(t *testing.T) {
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(0), say("a")))
		var ends []string
		for _, conn := range []*grpc.ClientConn{s.conn, s.Dial(t)} {
			stream := testkit.Must(conn.NewStream(t.Context(), clientStream, get))(t)
			_ = stream.CloseSend()
			synctest.Wait() // the second error depends on whether gRPC has the server's end
			ends = append(ends, fmt.Sprint(stream.RecvMsg(nil), stream.RecvMsg(new(wrapperspb.StringValue))))
		}
		if ends[0] != ends[1] {
			t.Errorf("%q; want gRPC's", ends)
		}
	})
}

// The context ends while an inner interceptor opens the only attempt, and the application never calls the stream.
func TestStreamSingle_CancelledWhileOpened(t *testing.T) {
	for name, of := range singles() {
		t.Run(name, func(t *testing.T) {
			c, options := of()
			f, b := &fuse{limit: 10}, &purse{grants: 99}
			p := &panics{fuse: f, purse: b}
			play(t, c, func(t *testing.T, s scene) {
				ctx, cancel := context.WithCancel(t.Context())
				conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					cancel()
					synctest.Wait()
					return stream
				})
				s.On(get, testserver.Hang())
				if _, err := conn.NewStream(ctx, bidiStream, get); err != nil && status.Code(err) != codes.Canceled {
					t.Error(err) // NewStream may return the end, or the stream that has it
				}
				s.overOnce(t, codes.Canceled, 1)
				if left := held(s.retrier, f, b); left != "" {
					t.Error(left)
				}
			}, append(options, p.options(true)...)...)
		})
	}
}

// hoarder is an inner interceptor that receives ahead.
type hoarder struct {
	grpc.ClientStream

	messages chan string
	end      error
	own      error // returned in place of end; may be nil
}

func (h *hoarder) hoard() {
	defer close(h.messages)
	for {
		m := new(wrapperspb.StringValue)
		if h.end = h.ClientStream.RecvMsg(m); h.end != nil {
			return
		}
		h.messages <- m.GetValue()
	}
}

func (h *hoarder) RecvMsg(m any) error {
	text, ok := <-h.messages
	if !ok {
		return cmp.Or(h.own, h.end)
	}
	m.(*wrapperspb.StringValue).Value = text
	return nil
}

// Headers are asked for, there are none, and the application leaves.
func TestStreamSingle_NoHeaders(t *testing.T) {
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		s.On(get, faults.Play().Then(testserver.Fail(codes.NotFound)))
		stream := s.open(t, t.Context(), bidiStream)
		if header, err := stream.Header(); header != nil || err != nil {
			t.Errorf("%v, %v", header, err)
		}
		s.overOnce(t, codes.NotFound, 1)
		if _, err := receive(stream); status.Code(err) != codes.NotFound || reasonOf(err) == "" {
			t.Error(err)
		}
	})
}

// orphan is the stream of an attempt that never left its connection, before that was closed: gRPC's Header calls OnFinish without an error,
// and RecvMsg returns one.
type orphan struct {
	grpc.ClientStream

	opts []grpc.CallOption
}

func (o orphan) Header() (none metadata.MD, err error) {
	for _, option := range o.opts {
		if option, ok := option.(grpc.OnFinishCallOption); ok {
			option.OnFinish(nil)
		}
	}
	return none, err
}

func (orphan) RecvMsg(any) error { return status.Error(codes.Unavailable, "transport is closing") }

// Whatever gRPC's OnFinish says, the call ends with the error of RecvMsg.
func TestStreamSingle_Orphan(t *testing.T) {
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
			func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				return orphan{opts: opts}, nil
			}))...)
		var finished []error
		stream := testkit.Must(conn.NewStream(t.Context(), bidiStream, get, grpc.OnFinish(func(err error) { finished = append(finished, err) })))(t)
		if header, err := stream.Header(); header != nil || err != nil {
			t.Errorf("%v, %v", header, err)
		}
		_, err := receive(stream)
		if status.Code(err) != codes.Unavailable || len(finished) != 1 || status.Code(finished[0]) != codes.Unavailable || s.calls[0].Code != codes.Unavailable {
			t.Errorf("%v; OnFinish %v, calls %+v", err, finished, s.calls)
		}
	})
}

// ownStream is a stream that an inner interceptor makes without gRPC, and that has ended.
type ownStream struct{ grpc.ClientStream }

func (ownStream) RecvMsg(any) error { return io.EOF }

// An inner interceptor that never calls gRPC ends the call when it returns: with an error, or with the end of its own stream.
func TestStreamSingle_WithoutGRPC(t *testing.T) {
	for name, of := range singles() {
		for _, want := range []codes.Code{codes.OK, codes.DataLoss} {
			t.Run(name+"/"+want.String(), func(t *testing.T) {
				c, options := of()
				play(t, c, func(t *testing.T, s scene) {
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
						func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
							return ownStream{}, status.Error(want, "an interceptor's word")
						}))...)
					stream, err := conn.NewStream(t.Context(), bidiStream, get)
					if err == nil {
						_, err = receive(stream)
					}
					if status.Code(streamEnd(err)) != want || len(s.calls) != 1 || s.calls[0].Code != want {
						t.Errorf("%v; calls %+v", err, s.calls)
					}
				}, options...)
			})
		}
	}
}

// The application leaves a stream after calls of each kind, and its context ends: so does the call.
func TestStreamSingle_LeftAfterCalls(t *testing.T) {
	for name, of := range singles() {
		t.Run(name, func(t *testing.T) {
			c, options := of()
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1), say("a")).Then(testserver.Hang()))
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, bidiStream)
				send(t, stream, "x")
				testkit.Must(stream.Header())(t)
				testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
				testkit.NoError(t, stream.CloseSend())
				cancel()
				s.overOnce(t, codes.Canceled, 1)
			}, options...)
		})
	}
}

// unheard runs a test with a Retrier that has no policy for the methods, and to which nobody listens: no observer, no gate.
func unheard(t *testing.T, c spec.Config, test func(t *testing.T, s scene)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), retrier: mustNew(t, mustSet(t, c))}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s)
	})
}

// A stream of a method without a policy, to which nobody listens, has the caller's own options and no context of ours: gRPC's OnFinish,
// header, trailer and peer go to the caller, with nothing in between.
func TestStreamPassed_CallersOptions(t *testing.T) {
	unheard(t, spec.Config{}, func(t *testing.T, s scene) {
		type key struct{}
		s.On(get, text("a").Header(metadata.Pairs("who", "h")).Trailer(metadata.Pairs("who", "t")))
		var seen []string
		var inner context.Context
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				inner = ctx
				for _, o := range opts {
					seen = append(seen, fmt.Sprintf("%T", o))
				}
				return open(ctx, desc, cc, method, opts...)
			}))...)
		var header, trailer metadata.MD
		var from peer.Peer
		var finished []error
		ctx := context.WithValue(t.Context(), key{}, true)
		stream := s.open(t, ctx, serverStream, grpc.WaitForReady(true), grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		send(t, stream, "x")
		got, err := receive(stream)
		all := fmt.Sprint(got, header["who"], trailer["who"], stream.Trailer()["who"], from.Addr != nil, finished)
		if all != "[a] [h] [t] [t] true [<nil>]" || err != io.EOF {
			t.Errorf("%s, %v", all, err)
		}
		want := "[interceptor.insideOption grpc.FailFastCallOption grpc.HeaderCallOption grpc.TrailerCallOption grpc.PeerCallOption grpc.OnFinishCallOption]"
		if fmt.Sprint(seen) != want {
			t.Errorf("gRPC gets the options %s; want %s", seen, want)
		}
		if inner != ctx {
			t.Error("the stream has another context")
		}
	})
}

// details are the code of an error, its reason and its attempts.
func details(err error) string {
	e, _ := errors.AsType[*interceptor.Error](err)
	if e == nil {
		return fmt.Sprint(status.Code(err), " without details")
	}
	return fmt.Sprint(status.Code(err), " ", e.Reason, " ", e.Attempts)
}

// Whatever ends such a stream, NewStream and RecvMsg say why it was not retried, as for every other call.
func TestStreamPassed_Errors(t *testing.T) {
	off := spec.Config{Mode: "OFF"}
	for name, row := range map[string]struct {
		config spec.Config
		step   testserver.Step
		act    func(s scene, cancel context.CancelFunc)
		want   string
	}{
		"a server's error": {step: down(), want: "Unavailable non_retryable 1"},
		"mode OFF":         {config: off, step: down(), want: "Unavailable non_retryable 1"},
		"cancelled":        {step: testserver.Hang(), act: func(_ scene, cancel context.CancelFunc) { cancel() }, want: "Canceled cancelled 1"},
		"closed":           {step: testserver.Hang(), act: func(s scene, _ context.CancelFunc) { _ = s.conn.Close() }, want: "Canceled closed 1"},
		"deadline": {
			step: testserver.Hang(), act: func(scene, context.CancelFunc) { time.Sleep(time.Minute) },
			want: "DeadlineExceeded deadline_exceeded 1",
		},
	} {
		for kind, desc := range kinds() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				unheard(t, row.config, func(t *testing.T, s scene) {
					s.On(get, row.step)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					synctest.Wait()
					if row.act != nil {
						row.act(s, cancel)
						synctest.Wait()
					}
					err := stream.RecvMsg(new(wrapperspb.StringValue))
					again := stream.RecvMsg(new(wrapperspb.StringValue))
					if got := details(err); got != row.want || details(again) != got {
						t.Errorf("%s, then %s; want %s", got, details(again), row.want)
					}
				})
			})
		}
	}
	t.Run("not opened", func(t *testing.T) {
		unheard(t, spec.Config{}, func(t *testing.T, s scene) {
			s.leave()
			stream, err := s.conn.NewStream(t.Context(), serverStream, get)
			if stream != nil || status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonNonRetryable {
				t.Errorf("%v, %v (%s)", stream, err, reasonOf(err))
			}
		})
	})
}
