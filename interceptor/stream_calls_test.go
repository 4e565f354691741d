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
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// OnFinish runs when the answer is known, and may ask the stream.
func TestStreamCalls_OnFinishAsks(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), moves.Play(moves.Receive(1), say("a")).Header(metadata.Pairs("from", "2")).Trailer(metadata.Pairs("end", "2")))
		asked := make(chan string, 1)
		opened := make(chan grpc.ClientStream, 1)
		stream := s.open(t, t.Context(), serverStream, grpc.OnFinish(func(error) {
			stream := <-opened
			header, _ := stream.Header()
			asked <- fmt.Sprint(header["from"], stream.Trailer()["end"], stream.Context() != nil)
		}))
		opened <- stream
		send(t, stream, "x")
		if got, err := receive(stream); err != io.EOF || fmt.Sprint(got) != "[a]" {
			t.Errorf("%v, %v", got, err)
		}
		if got := <-asked; got != "[2] [2] true" {
			t.Errorf("OnFinish has seen %s", got)
		}
	})
}

// A sender that waits for io.EOF hears of the server's end with the next message.
func TestStreamCalls_SendToTheEnd(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.SendHeader(nil), moves.Receive(1), say("enough")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		synctest.Wait()
		if err := stream.SendMsg(wrapperspb.String("b")); err != io.EOF {
			t.Errorf("SendMsg: %v; want EOF", err)
		}
		if got, err := receive(stream); fmt.Sprint(got) != "[enough]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// An inner interceptor doesn't pass on gRPC's options, the call is cancelled, and the application stops calling the
// stream.
func TestStreamCalls_OptionsKept(t *testing.T) {
	for name, c := range map[string]spec.Config{"retried": config(plain()), "hedged": hedged(), "single": {}} {
		t.Run(name, func(t *testing.T) {
			f := &fuse{limit: 10}
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, testserver.Hang())
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
						return open(ctx, desc, cc, method)
					}))...)
				ctx, cancel := context.WithCancel(t.Context())
				stream := must.Get(conn.NewStream(ctx, serverStream, get))(t)
				send(t, stream, "x")
				synctest.Wait() // a hedged stream is opened in a goroutine
				cancel()
				time.Sleep(time.Second)
				s.overOnce(t, codes.Canceled, 1)
				if f.granted != len(f.told) {
					t.Errorf("the breaker was asked %d times and told %d times", f.granted, len(f.told))
				}
			}, withFuse(f))
		})
	}
}

// Headers of a failed stream are asked for, and then the call is cancelled: nothing is held.
func TestStreamCalls_HeaderThenCancel(t *testing.T) {
	for name, before := range map[string]func(grpc.ClientStream){
		"nothing before": func(grpc.ClientStream) {}, "committed": func(s grpc.ClientStream) { s.Context() },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fuse{limit: 10}
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play().Then(testserver.Fail(codes.NotFound)))
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, clientStream)
				before(stream)
				_, _ = stream.Header()
				cancel()
				synctest.Wait()
				if len(s.calls) != 1 || f.granted != len(f.told) {
					t.Errorf("calls %+v; the breaker was asked %d times and told %d times", s.calls, f.granted, len(f.told))
				}
			}, withFuse(f))
		})
	}
}

// Committed by its context before the first message, a stream is answered with that message, and not with its end.
func TestStreamCalls_AnswerTime(t *testing.T) {
	retry := hasty()
	retry.Budget = ""
	p := &purse{grants: 9}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, moves.Play().Then(down()), moves.Play(moves.Pause(500*ms), say("a"), moves.Pause(time.Hour), say("b")))
		stream := s.open(t, t.Context(), bidiStream)
		time.AfterFunc(200*ms, func() { stream.Context() }) // of the second attempt
		if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF || p.refunded != 1 {
			t.Errorf("%v, %v; the budget: %s; want 1 refunded", got, err, p)
		}
	}, interceptor.WithBudget("", forAll(p)))
}

// gRPC answers RecvMsg(nil).
func TestStreamCalls_RecvNil(t *testing.T) {
	for name, c := range map[string]spec.Config{"retried": config(plain()), "hedged": hedged()} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, takes(10*ms, "a"))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				_ = stream.CloseSend()
				if err := stream.RecvMsg(nil); status.Code(err) != codes.Internal {
					t.Errorf("%v; want INTERNAL", err)
				}
				s.overOnce(t, codes.Internal, 1)
			})
		})
	}
}

// A stream that is cancelled while it receives has its peer, though gRPC's OnFinish comes later than RecvMsg returns.
func TestStreamCalls_CancelledHasPeer(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				return open(ctx, desc, cc, method, append([]grpc.CallOption{grpc.OnFinish(func(error) { time.Sleep(10 * ms) })}, opts...)...)
			}))...)
		s.On(get, testserver.Hang())
		for range 200 {
			var from peer.Peer
			ctx, cancel := context.WithCancel(t.Context())
			stream := must.Get(conn.NewStream(ctx, bidiStream, get, grpc.Peer(&from)))(t)
			send(t, stream, "x")
			time.AfterFunc(time.Second, cancel)
			if _, err := receive(stream); status.Code(err) != codes.Canceled || from.Addr == nil {
				t.Fatalf("%v, peer %v", err, from.Addr)
			}
		}
	})
}

func TestStreamCalls_EarlyNotDecodable(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"bidi": bidiStream, "client": clientStream} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.SendRaw([]byte{0xff})))
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

// ended is what SendMsg says of a stream that the server has ended: io.EOF, after which RecvMsg
// tells how.
func ended(t *testing.T, stream grpc.ClientStream) {
	t.Helper()
	if err := stream.SendMsg(wrapperspb.String("more")); err != io.EOF {
		t.Errorf("SendMsg to a stream that has ended: %v; want io.EOF", err)
	}
}

func TestStreamCalls_CutFirstMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), moves.Cut()), moves.Play(moves.Receive(1), say("a", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b]" || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

// A client stream can bring its reply and then fail. gRPC has then decoded the reply already, and a
// codec that adds to what it finds would mix it with that of the next attempt.
func TestStreamCalls_ReplyEmptied(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(0), moves.SendRaw([]byte("bad"))).Then(down()),
			moves.Play(moves.Receive(0), moves.SendRaw([]byte("good"))))
		stream := s.open(t, t.Context(), clientStream, grpc.ForceCodec(notes{"forced"}))
		_ = stream.CloseSend()
		reply := new(note)
		if err := stream.RecvMsg(reply); err != nil || reply.text != "good" || s.Count(get) != 2 {
			t.Errorf("%q, %v after %d attempts", reply.text, err, s.Count(get))
		}
	})
}

// Time in which the application does something else is not the server's: streams that are read late don't make the target look slow, so that
// the next failure is retried.
func TestStreamCalls_ReadLate(t *testing.T) {
	for kind, desc := range kinds() {
		t.Run(kind, func(t *testing.T) {
			fresh(t, config(plain()), func(t *testing.T, s scene) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				s.On(get, moves.Play(moves.Receive(1), say("a")))
				var streams []grpc.ClientStream
				for range 10 {
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					_ = stream.CloseSend()
					streams = append(streams, stream)
				}
				time.Sleep(6 * time.Second)
				for _, stream := range streams {
					if got, err := receive(stream); fmt.Sprint(got) != "[a]" || streamEnd(err) != nil {
						t.Error(got, err)
					}
				}
				s.On(get, down(), text("b"))
				if got, err := s.call(ctx, get); got != "b" || err != nil {
					t.Errorf("%s, %v (%s)", got, err, reasonOf(err))
				}
			})
		})
	}
}

// Time that the application takes for its request is not idle time of the server's: uploads that are answered late show that the target is slow.
func TestStreamCalls_SlowAfterUpload(t *testing.T) {
	fresh(t, config(plain()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s.On(get, moves.Play(moves.Receive(0), moves.Pause(6*time.Second), say("a")))
		var streams sync.WaitGroup
		for range 10 {
			streams.Go(func() {
				stream := s.open(t, ctx, clientStream)
				send(t, stream, "x")
				time.Sleep(5 * time.Second)
				_ = stream.CloseSend()
				if got, err := receive(stream); fmt.Sprint(got) != "[a]" || streamEnd(err) != nil {
					t.Error(got, err)
				}
			})
		}
		streams.Wait()
		s.On(get, down(), text("b"))
		if got, err := s.call(ctx, get); reasonOf(err) != policy.ReasonSlowEverywhere {
			t.Errorf("%s, %v; want %s", got, err, policy.ReasonSlowEverywhere)
		}
	})
}
