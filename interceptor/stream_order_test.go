// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// RecvMsg may begin before the request is sent, while other goroutines send it and ask for headers. One stream of gRPC never has two
// receives, and everything ends at the deadline.
func TestStreamOrder_ReceiveBeforeSend(t *testing.T) {
	for name, c := range retriedPolicies() {
		for does, step := range map[string]testserver.Step{
			"hangs":  testserver.Hang(),
			"fails":  failing(),
			"slowly": faults.Play(faults.Receive(1), faults.Pause(3*time.Second)).Then(down()),
		} {
			t.Run(name+"/"+does, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					o := new(overlaps)
					s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
						return &overlap{ClientStream: stream, overlaps: o}
					})
					s.On(get, step)
					ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
					defer cancel()
					stream := s.open(t, ctx, serverStream)
					began := time.Now()
					var all sync.WaitGroup
					all.Go(func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) })
					all.Go(func() {
						time.Sleep(ms)
						_ = stream.SendMsg(wrapperspb.String("x"))
						_ = stream.CloseSend()
					})
					all.Go(func() {
						time.Sleep(2 * ms)
						_, _ = stream.Header()
					})
					all.Wait()
					if took := time.Since(began); took > 8*time.Second+200*ms {
						t.Errorf("the stream ended after %v; want its deadline", took)
					}
					if len(o.list) > 0 {
						t.Errorf("at the same time: %v", o.list)
					}
				})
			})
		}
	}
}

// slowSender is an inner interceptor that works after it has sent the request.
type slowSender struct {
	grpc.ClientStream

	work time.Duration
}

func (s slowSender) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	time.Sleep(s.work)
	return err
}

// An attempt that succeeds without a message while it is sent the log again is an end for RecvMsg, and no message.
func TestStreamOrder_SuccessWhileReplaying(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return slowSender{stream, time.Second} })
		s.On(get, faults.Play(faults.Receive(2)).Then(down()), faults.Play())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a", "b")
		if got, err := receive(stream); len(got) > 0 || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%q, %v after %d attempts; want the second attempt's end", got, err, s.Count(get))
		}
	})
}

// A request that is sent is not sent again to the attempt that resumes the stream, though SendMsg is still inside an interceptor.
func TestResume_SendMsgIsStillInside(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return slowSender{stream, time.Second}
		})
		s.On(get,
			faults.Play(faults.Receive(1), say("1"), faults.Pause(10*ms), say("2"), faults.Cut()),
			faults.Play(faults.Receive(1), faults.Pause(5*time.Second), say("3")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		var both sync.WaitGroup
		both.Go(func() {
			if err := stream.SendMsg(wrapperspb.String("from the start")); err != nil {
				t.Errorf("SendMsg: %v", err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Errorf("CloseSend: %v", err)
			}
		})
		got, err := receive(stream)
		both.Wait()
		if fmt.Sprint(got) != "[1 2 3]" || err != io.EOF {
			t.Errorf("%v, %v; want [1 2 3]", got, err)
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[from the start] [after 2]]" {
			t.Errorf("the server heard %s", heard)
		}
	})
}

// Headers commit the stream while SendMsg is still inside. Until the first message, the request is kept for resumption.
func TestResume_HeadersBeforeSendMsgReturns(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return slowSender{stream, time.Second} })
		s.On(get,
			faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Pause(5*time.Second), faults.Cut()),
			faults.Play(faults.Receive(1), say("1")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		go func() { _, _ = stream.Header() }()
		send(t, stream, "from the start")
		if got, err := receive(stream); fmt.Sprint(got) != "[1]" || err != io.EOF || s.retrier.Replayed() != 0 {
			t.Errorf("%v, %v; want [1]", got, err)
		}
	})
}

// A server may answer, and cut the stream, before the request is sent.
func TestResume_SentAfterwards(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(say("1"), faults.Pause(ms), faults.Cut()),
			faults.Play(faults.Receive(1), faults.Pause(time.Second), say("2")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		time.AfterFunc(500*ms, func() {
			if err := stream.SendMsg(wrapperspb.String("from the start")); err != nil {
				t.Errorf("SendMsg: %v", err)
			}
		})
		if got, err := receive(stream); fmt.Sprint(got) != "[1 2]" || err != io.EOF {
			t.Errorf("%v, %v; want [1 2]", got, err)
		}
	})
}

// A function that changes the message in place gets the application's last one each time.
func TestResume_LastIsChanged(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(faults.Receive(1), say("1"), faults.Cut()),
			faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Cut()),
			faults.Play(faults.Receive(1), say("2")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(func(last proto.Message) (proto.Message, bool) {
			m := last.(*wrapperspb.StringValue)
			m.Value = "after " + m.GetValue()
			return m, true
		}))
		send(t, stream, "x")
		m := new(wrapperspb.StringValue)
		_ = stream.RecvMsg(m)
		headersAfter := func() { time.Sleep(50 * ms); _, _ = stream.Header() }
		go headersAfter()
		if got, err := receive(stream); fmt.Sprint(got) != "[2]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[x] [after 1] [after 1]]" {
			t.Errorf("the server heard %s", heard)
		}
	})
}

// withoutHeaders is an inner interceptor that answers without headers, as a cache does.
type withoutHeaders struct {
	grpc.ClientStream

	list   []string
	asked  *[]string // the types of messages
	finish func(error)
}

func (w *withoutHeaders) Header() (headers metadata.MD, err error) { return headers, err }

func (w *withoutHeaders) SendMsg(any) error { return nil }

func (w *withoutHeaders) CloseSend() error { return nil }

func (w *withoutHeaders) RecvMsg(m any) error {
	*w.asked = append(*w.asked, fmt.Sprintf("%T", m))
	if len(w.list) == 0 {
		w.finish(nil)
		return io.EOF
	}
	if m, ok := m.(*wrapperspb.StringValue); ok {
		m.Value = w.list[0]
	}
	w.list = w.list[1:]
	return nil
}

// Header of a stream without headers takes none of its messages.
func TestStreamOrder_WithoutHeaders(t *testing.T) {
	for name, c := range retriedPolicies() {
		for _, resumes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/resumes %v", name, resumes), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					var asked []string
					s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
						func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
							finish := func(err error) {
								for _, o := range opts {
									if o, ok := o.(grpc.OnFinishCallOption); ok {
										o.OnFinish(err)
									}
								}
							}
							return &withoutHeaders{list: []string{"a", "b"}, asked: &asked, finish: finish}, nil
						}))...)
					var opts []grpc.CallOption
					if resumes {
						opts = append(opts, interceptor.Resume(after))
					}
					stream := s.open(t, t.Context(), serverStream, opts...)
					send(t, stream, "x")
					_ = stream.CloseSend()
					if md, err := stream.Header(); md != nil || err != nil {
						t.Errorf("Header: %v, %v", md, err)
					}
					if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF {
						t.Errorf("%v, %v; want [a b]", got, err)
					}
					for _, m := range asked {
						if m != "*wrapperspb.StringValue" {
							t.Errorf("the inner stream was asked for %s", m)
						}
					}
				})
			})
		}
	}
}

// An error is its own: nothing of an older attempt is added to its text.
func TestStreamOrder_TextOfTheEnd(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "the first"), testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stream := s.open(t, ctx, serverStream)
		send(t, stream, "x")
		_, err := receive(stream)
		e, _ := errors.AsType[*interceptor.Error](err)
		if status.Code(err) != codes.DeadlineExceeded || e == nil || e.Attempts != 2 || !gRPCsOwn(status.Convert(err).Message()) {
			t.Errorf("%v; want gRPC's own text", err)
		}
		if _, again := receive(stream); again.Error() != err.Error() {
			t.Errorf("RecvMsg: %v, and again: %v", err, again)
		}
	})
}

// While RecvMsg waits that began before the request was sent, no attempt is slow. The next one may be.
func TestStreamOrder_SlowAfterARetry(t *testing.T) {
	play(t, retriedPolicies()["replaced when slow"], func(t *testing.T, s scene) {
		s.connect()
		s.On(get, faults.Play(faults.Receive(1), faults.Pause(3*time.Second)).Then(down()), testserver.Hang(), faults.Play(faults.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		time.AfterFunc(ms, func() { send(t, stream, "x") })
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if want := "[0s 3.101s 4.301s]"; s.sent() != want {
			t.Errorf("attempts were sent at %s; want %s", s.sent(), want)
		}
	})
}

// A fault of the library ends a call: it never waits for an attempt whose end cannot come.
func TestStreamOrder_AFaultEndsTheCall(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		stream := s.open(t, ctx, serverStream)
		send(t, stream, "x")
		time.AfterFunc(time.Second, func() { interceptor.MistakeAnEnd(stream) })
		if _, err := receive(stream); status.Code(err) != codes.Internal || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A committed stream keeps nothing of what it has sent, for its whole life.
func TestStreamCommit_KeepsNoMemory(t *testing.T) {
	for kind, desc := range kinds() {
		t.Run(kind, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Pause(time.Hour)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream := s.open(t, ctx, desc)
				send(t, stream, strings.Repeat("x", 8000))
				if n := interceptor.Kept(stream); n < 8000 {
					t.Errorf("%d bytes are kept; want the message", n)
				}
				testkit.Must(stream.Header())(t)
				if n := interceptor.Kept(stream); n > 0 {
					t.Errorf("%d bytes are kept", n)
				}
			})
		})
	}
}

// A load balancer resets a watch after its first message, as AWS' does: the watch is resumed.
func TestResume_AfterAReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		streams := 0
		conn := speaking(t, mustNew(t, mustSet(t, config(plain()))), func(f *http2.Framer, frame http2.Frame) {
			headers, ok := frame.(*http2.HeadersFrame)
			if !ok {
				return
			}
			streams++
			if streams > 1 {
				complete(f, headers.StreamID)
				return
			}
			respond(f, headers.StreamID)
			_ = f.WriteData(headers.StreamID, false, make([]byte, 5))
			_ = f.WriteRSTStream(headers.StreamID, http2.ErrCodeProtocol)
		})
		next := func(last proto.Message) (proto.Message, bool) { return last, true }
		stream := scene{conn: conn}.open(t, t.Context(), serverStream, interceptor.Resume(next))
		send(t, stream, "x")
		_ = stream.CloseSend()
		if got, err := receive(stream); len(got) != 2 || err != io.EOF || streams != 2 {
			t.Errorf("%q, %v after %d attempts; want two messages", got, err, streams)
		}
	})
}

// gRPCsOwn reports whether a text is gRPC's for a deadline: its own, or that of the server's reset, which may come first.
func gRPCsOwn(text string) bool {
	return text == "context deadline exceeded" || text == "stream terminated by RST_STREAM with error code: CANCEL"
}
