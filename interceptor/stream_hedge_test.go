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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestStreamHedge_Quantile(t *testing.T) {
	follow := func(h *policy.HedgeSpec) {
		h.Delay, h.Quantile = time.Minute, 0.9
	}
	play(t, hedged(follow), func(t *testing.T, s scene) {
		usual := moves.Play(moves.Receive(1), moves.Pause(20*ms), say("a"), moves.Pause(time.Second), say("b"))
		s.On(get, slices.Repeat([]testserver.Step{usual}, 40)...)
		for range 40 {
			if got, _, err := s.whole(t, serverStream); got != "[a b]" || err != io.EOF {
				t.Fatalf("%s, %v", got, err)
			}
		}
		s.Reset()
		s.On(get, testserver.Hang(), takes(0, "second"))
		got, took, _ := s.whole(t, serverStream)
		if got != "[second]" || took < 20*ms || took > 21*ms {
			t.Errorf("%s after %v; want it hedged after 20 ms", got, took)
		}
	})
}

// takes is an attempt that receives all messages, and answers after a while.
func takes(after time.Duration, answer string) testserver.Step {
	return moves.Play(moves.Receive(0), moves.Pause(after), say(answer))
}

// hedgedKinds are the kinds of streams that are hedged: the application sends one message.
func hedgedKinds() map[string]*grpc.StreamDesc {
	return map[string]*grpc.StreamDesc{"server": serverStream, "one each way": {}}
}

// streamEnd is the error of a stream that has ended with err.
func streamEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// The application of this stream only waits: failures are still noticed.
func TestStreamHedge_FailureNobodyAskedFor(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down().Delay(30*ms), down().Delay(20*ms), takes(0, "third"))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		time.Sleep(time.Second)
		if s.sent() != "[0s 30ms 50ms]" {
			t.Errorf("sent %s", s.sent())
		}
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[third]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// The first attempt gets headers, which the application has not requested, and loses.
func TestStreamHedge_WinnersMetadata(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		who := func(name string) moves.Move { return moves.SendHeader(metadata.Pairs("who", name)) }
		s.On(get, moves.Play(who("first"), moves.Pause(time.Hour)).Trailer(metadata.Pairs("who", "first")),
			moves.Play(who("second"), moves.Receive(1), say("second")).Trailer(metadata.Pairs("who", "second")))
		var (
			header, trailer metadata.MD
			from            peer.Peer
			finished        []error
		)
		stream := s.open(t, t.Context(), serverStream, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		send(t, stream, "x")
		got, err := receive(stream)
		seen, _ := stream.Header()
		synctest.Wait() // RecvMsg does not wait for callbacks
		all := fmt.Sprint(got, header["who"], seen["who"], trailer["who"], stream.Trailer()["who"], finished)
		if all != "[second] [second] [second] [second] [second] [<nil>]" || err != io.EOF || from.Addr == nil {
			t.Errorf("%s, %v, peer %v", all, err, from)
		}
	})
}

// The application's calls that commit choose the oldest running attempt, and the others are cancelled.
func TestStreamHedge_CommitsToOldest(t *testing.T) {
	for why, commit := range map[string]func(t *testing.T, s scene, stream grpc.ClientStream){
		"context": func(t *testing.T, _ scene, stream grpc.ClientStream) {
			t.Helper()
			if stream.Context().Err() != nil {
				t.Error("the context has ended")
			}
		},
	} {
		t.Run(why, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, down().Delay(30*ms), down().Delay(time.Second), testserver.Hang())
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				start := time.Now()
				time.AfterFunc(500*ms, func() { commit(t, s, stream) }) // the first has failed, the second and the third run
				_, err := receive(stream)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != why || s.Count(get) != 3 {
					t.Fatalf("%v, %+v", err, e)
				}
				if time.Since(start) != 1030*ms || s.ends() != "[1  2 lost 3 cancelled]" {
					t.Errorf("after %v: %s", time.Since(start), s.ends())
				}
			})
		})
	}
}

func TestStreamHedge_CommitMeetsCancel(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		for n := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			stream := s.open(t, ctx, serverStream)
			send(t, stream, "x")
			go func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }()
			time.Sleep(250 * ms) // there are three attempts
			done := make(chan bool)
			go func() { cancel(); close(done) }()
			stream.Context() // and no other call
			<-done
			synctest.Wait()
			if len(s.calls) != n+1 || s.retrier.Replayed() != 0 {
				t.Fatalf("%d calls of %d have ended, %d bytes kept", len(s.calls), n+1, s.retrier.Replayed())
			}
		}
	})
}

func TestStreamHedge_Cancel(t *testing.T) {
	for name, desc := range kinds() {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang())
				for i, after := range []time.Duration{50 * ms, 150 * ms, 5 * time.Second} {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(after, cancel)
					start := time.Now()
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					if _, err := receive(stream); status.Code(err) != codes.Canceled || time.Since(start) != after {
						t.Errorf("%v after %v; want CANCELED after %v", err, time.Since(start), after)
					}
					synctest.Wait()
					if len(s.calls) != i+1 || len(s.attempts) != s.Count(get) {
						t.Errorf("%d calls and %d of %d attempts have ended", len(s.calls), len(s.attempts), s.Count(get))
					}
				}
			})
		})
	}
}

func TestStreamHedge_Deadline(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
		defer cancel()
		stream := s.open(t, ctx, serverStream)
		send(t, stream, "x")
		time.Sleep(time.Second) // and nobody receives, so that no attempt is slow
		s.overOnce(t, codes.DeadlineExceeded, 1)
		if s.calls[0].Elapsed != 150*ms || s.retrier.Replayed() != 0 {
			t.Errorf("after %v, %d bytes kept", s.calls[0].Elapsed, s.retrier.Replayed())
		}
	})
}

// The message of the first attempt is held up, by an inner interceptor, until the second has won.
func TestStreamHedge_LateMessage(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return &lateReceiver{stream, func() { time.Sleep(time.Second) }}
			}
			return stream
		})
		s.On(get, moves.Play(moves.Receive(1), moves.Pause(50*ms), say("1", "1", "1"), moves.Pause(time.Hour)),
			moves.Play(moves.Receive(1), say("2"), moves.Pause(100*ms), say("2")))
		got, took, err := s.whole(t, serverStream)
		if got != "[2 2]" || err != io.EOF || s.ends() != "[1 cancelled 2 won]" {
			t.Errorf("%s, %v after %v: %s", got, err, took, s.ends())
		}
	})
}

// The call ends while its first message is on its way, and the application makes no other call.
func TestStreamHedge_CancelMeetsAnswer(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		ctx, cancel := context.WithCancel(t.Context())
		s = s.within(t, func(_ context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
			return &lateReceiver{stream, func() { cancel(); time.Sleep(ms) }}
		})
		s.On(get, moves.Play(moves.Receive(1), say("a"), moves.Pause(time.Hour)))
		stream := s.open(t, ctx, serverStream)
		send(t, stream, "x")
		go func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }()
		time.Sleep(time.Second)
		s.overOnce(t, codes.Canceled, 1)
	})
}

// A message is on its way when the call is cancelled. Meanwhile another attempt fails, before or after it. A server's
// error says more than the cancellation, and the other attempt's message is not delivered with it.
func TestStreamHedge_MessageAfterCancel(t *testing.T) {
	for name, fails := range map[string]time.Duration{"failure before it": 250 * ms, "failure after it": 350 * ms} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				begin := time.Now()
				s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
					until := []time.Duration{300 * ms, fails, 300 * ms}[n-1]
					return &lateReceiver{stream, func() { time.Sleep(time.Until(begin.Add(until))) }}
				})
				s.On(get, moves.Play(moves.Receive(1), moves.SendHeader(metadata.Pairs("by", "1")), say("a"), moves.Pause(time.Hour)),
					moves.Play(moves.Receive(1), moves.Pause(50*ms)).Then(testserver.Fail(codes.DataLoss).Trailer(metadata.Pairs("by", "2"))),
					testserver.Hang())
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(170*ms, cancel)
				var header, trailer metadata.MD
				stream := s.open(t, ctx, serverStream, grpc.Header(&header), grpc.Trailer(&trailer))
				send(t, stream, "x")
				got, err := receive(stream)
				if len(got) != 0 || status.Code(err) != codes.DataLoss {
					t.Errorf("%v, %v", got, err)
				}
				if fmt.Sprint(header.Get("by"), trailer.Get("by"), stream.Trailer().Get("by")) != "[] [2] [2]" {
					t.Errorf("header of %v, trailer of %v, %v", header.Get("by"), trailer.Get("by"), stream.Trailer().Get("by"))
				}
				s.overOnce(t, codes.DataLoss, 2)
			})
		})
	}
}

func TestStreamHedge_Refused(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		gate := make(chan struct{})
		close(gate)
		s = s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 2 {
				return slow{stream, gate, status.Error(codes.Unavailable, "an interceptor's no")}
			}
			return stream
		})
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		e, _ := errors.AsType[*interceptor.Error](err)
		if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != "unsendable" || s.sent() != "[0s 100ms]" {
			t.Errorf("%v, %+v, sent %s", err, e, s.sent())
		}
	})
}

func TestStreamHedge_Budget(t *testing.T) {
	purse := &purse{grants: 10}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(0, "second"))
		_, _, _ = s.whole(t, serverStream)
		synctest.Wait()
		want := "asked [hedge], failed 0, returned 0, refunded 1, ok 1, bad 0"
		if purse.String() != want {
			t.Errorf("the budget: %v; want %s", purse, want)
		}
	}, interceptor.WithBudget("", purse))
}

func TestStreamHedge_TooLarge(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), serverStream, grpc.MaxCallSendMsgSize(10))
		start := time.Now()
		err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", 100)))
		if status.Code(err) != codes.ResourceExhausted || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		s.overOnce(t, codes.ResourceExhausted, 1)
	})
}

// The application may change a message when SendMsg has returned: many do.
func TestStreamHedge_MessageUsedAgain(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(time.Second, "2"))
		stream := s.open(t, t.Context(), serverStream)
		m := wrapperspb.String("a")
		if err := stream.SendMsg(m); err != nil {
			t.Fatal(err)
		}
		m.Value = "d"
		_ = stream.CloseSend()
		_, _ = receive(stream)
		if got := fmt.Sprint(s.heardBy()[1]); got != "[a]." {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}

// lateReceiver runs a function between a message and its delivery.
type lateReceiver struct {
	grpc.ClientStream

	then func()
}

func (l *lateReceiver) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	l.then()
	return err
}

// Context and Trailer may commit the call to an attempt while that fails; observers take their time then.
func TestStreamHedge_CommittedAttemptFails(t *testing.T) {
	for name, commit := range map[string]func(grpc.ClientStream){
		"context": func(s grpc.ClientStream) { s.Context() },
	} {
		t.Run(name, func(t *testing.T) {
			slow := interceptor.WithObserver(interceptor.Observer{
				Call: func(context.Context, interceptor.Event) { time.Sleep(time.Second) },
			})
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, down().Delay(50*ms))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				commit(stream)
				time.Sleep(100 * ms) // the attempt has failed
				if _, err := receive(stream); reasonOf(err) != policy.ReasonCommitted {
					t.Errorf("%v", err)
				}
				time.Sleep(time.Second) // another goroutine may tell the observer
				s.overOnce(t, codes.Unavailable, 1)
			}, slow)
		})
	}
}

// When RecvMsg has returned the only reply, the call is complete and can't change any more.
func TestStreamHedge_SingleReplyIsTheEnd(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"client": clientStream, "one message each way": {}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			slow := interceptor.WithObserver(interceptor.Observer{
				Attempt: func(context.Context, interceptor.Event) { cancel(); time.Sleep(time.Second) },
			})
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, takes(50*ms, "sum").Header(metadata.Pairs("k", "h")).Trailer(metadata.Pairs("k", "t")))
				var header, trailer metadata.MD
				var finished []error
				stream := s.open(t, ctx, desc, grpc.Header(&header), grpc.Trailer(&trailer),
					grpc.OnFinish(func(err error) { time.Sleep(time.Second); finished = append(finished, err) }))
				send(t, stream, "x")
				_ = stream.CloseSend()
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				seen := fmt.Sprint(header["k"], trailer["k"])
				time.Sleep(time.Minute) // observers and OnFinish take their time; nobody waits for them
				synctest.Wait()
				if got := fmt.Sprint(err, " ", seen, finished); got != "<nil> [h] [t][<nil>]" {
					t.Errorf("error, header, trailer, OnFinish: %s", got)
				}
				s.overOnce(t, codes.OK, 1)
			}, slow)
		})
	}
}

// Messages after the end are dropped, whether we receive them or the application does.
func TestStreamHedge_NothingAfterTheEnd(t *testing.T) {
	for name, commit := range map[string]func(grpc.ClientStream){
		"uncommitted": func(grpc.ClientStream) {}, "committed": func(s grpc.ClientStream) { s.Context() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(func(h *policy.HedgeSpec) { h.Delay = time.Hour }), func(t *testing.T, s scene) {
				ctx, cancel := context.WithCancel(t.Context())
				s = s.within(t, func(_ context.Context, _ int, stream grpc.ClientStream) grpc.ClientStream {
					return &lateReceiver{stream, func() { time.Sleep(time.Second) }}
				})
				s.On(get, moves.Play(moves.Receive(1), moves.Pause(50*ms), say("a"), moves.Pause(time.Hour)))
				stream := s.open(t, ctx, serverStream)
				send(t, stream, "x")
				commit(stream)
				time.AfterFunc(500*ms, cancel) // the message is on its way
				got, err := receive(stream)
				time.Sleep(time.Minute)
				again := stream.RecvMsg(new(wrapperspb.StringValue))
				if len(got) > 1 || status.Code(err) != codes.Canceled || again != err {
					t.Errorf("%v, %v, then %v", got, err, again)
				}
				s.overOnce(t, codes.Canceled, 1)
			})
		})
	}
}

// These race conditions happen by chance, in many concurrent streams.
func TestStreamHedge_Moments(t *testing.T) {
	for name, row := range map[string]struct {
		desc  *grpc.StreamDesc
		first testserver.Step
		act   func(stream grpc.ClientStream, cancel context.CancelFunc) // as the attempt ends
	}{
		"context as an attempt fails": {serverStream, down().Delay(5 * ms), func(s grpc.ClientStream, _ context.CancelFunc) { s.Context() }},
		"trailer as an attempt fails": {serverStream, down().Delay(5 * ms), func(s grpc.ClientStream, _ context.CancelFunc) { s.Trailer() }},
		"headers as the call is cancelled": {serverStream, moves.Play(moves.Pause(5*ms), moves.SendHeader(nil), moves.Pause(time.Hour)), func(s grpc.ClientStream, cancel context.CancelFunc) {
			go cancel()
			_, _ = s.Header()
		}},
		"cancel as the one reply comes":  {clientStream, takes(5*ms, "sum"), func(_ grpc.ClientStream, cancel context.CancelFunc) { cancel() }},
		"nothing as the one reply comes": {clientStream, takes(5*ms, "sum"), func(grpc.ClientStream, context.CancelFunc) {}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, row.first)
				n := 250
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() { s.moment(t, row.desc, row.act) })
				}
				wg.Wait()
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.calls) != n || s.retrier.Replayed() != 0 {
					t.Errorf("%d calls have ended, %d bytes are kept", len(s.calls), s.retrier.Replayed())
				}
			})
		})
	}
}

// moment makes a stream, and runs a function concurrently with the end of its attempt, after 5 ms.
func (s scene) moment(t *testing.T, desc *grpc.StreamDesc, act func(grpc.ClientStream, context.CancelFunc)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var trailer metadata.MD
	finished := make(chan error, 2)
	stream := s.open(t, ctx, desc, grpc.Trailer(&trailer), grpc.OnFinish(func(err error) { finished <- err }))
	send(t, stream, "x")
	_ = stream.CloseSend()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { time.Sleep(5 * ms); act(stream, cancel) })
	err := stream.RecvMsg(new(wrapperspb.StringValue))
	if told := <-finished; told != err || len(finished) > 0 {
		t.Errorf("RecvMsg: %v; OnFinish was told %v, and %d more", err, told, len(finished))
	}
}

// io.EOF from SendMsg would say that the server never got the message that it has answered.
func TestStreamHedge_SendOvertakenByAnswer(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s = s.within(t, func(ctx context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return lateSend{stream, ctx}
		})
		s.On(get, testserver.Hang(), moves.Play(moves.Receive(1)).Then(testserver.Fail(codes.DataLoss)))
		stream := s.open(t, t.Context(), serverStream)
		if err := stream.SendMsg(wrapperspb.String("a")); err != nil {
			t.Errorf("SendMsg: %v, for a message that was sent", err)
		}
		if _, err := receive(stream); status.Code(err) != codes.DataLoss {
			t.Errorf("RecvMsg: %v", err)
		}
	})
}

// lateSend returns from SendMsg when the attempt is over.
type lateSend struct {
	grpc.ClientStream

	ctx context.Context
}

func (l lateSend) SendMsg(m any) error {
	err := l.ClientStream.SendMsg(m)
	<-l.ctx.Done()
	return err
}
