// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// NewStream opens the first attempt of each kind. The operation that finds that it has failed waits for the backoff, as gRPC's does, SendMsg
// among them, opens the next attempt, and sends it what the first one was sent.
func TestStream_OperationsRetry(t *testing.T) {
	for name, row := range map[string]struct {
		desc *grpc.StreamDesc
		call func(grpc.ClientStream) error
		sent string
	}{
		"SendMsg":   {bidiStream, func(s grpc.ClientStream) error { return s.SendMsg(wrapperspb.String("b")) }, "[a b]"},
		"Header":    {bidiStream, func(s grpc.ClientStream) error { _, err := s.Header(); return err }, "[a]"},
		"RecvMsg":   {bidiStream, func(s grpc.ClientStream) error { return s.RecvMsg(new(wrapperspb.StringValue)) }, "[a]"},
		"an upload": {clientStream, func(s grpc.ClientStream) error { return s.SendMsg(wrapperspb.String("b")) }, "[a b]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.Receive(1), moves.SendHeader(nil), say("ok"), moves.Receive(0)))
				stream := s.open(t, t.Context(), row.desc)
				synctest.Wait()
				if n := s.Count(get); n != 1 {
					t.Errorf("NewStream has opened %d attempts", n)
				}
				send(t, stream, "a")
				time.Sleep(time.Hour) // the application calls nothing, so nothing is retried
				if n := s.Count(get); n != 1 {
					t.Errorf("%d attempts, though the application calls nothing", n)
				}
				began := time.Now()
				err := row.call(stream)
				synctest.Wait()
				if took := time.Since(began); err != nil || took != 100*ms || s.Count(get) != 2 || fmt.Sprint(s.heard(1)) != row.sent {
					t.Errorf("%v after %v, with %d attempts; the second has received %v", err, took, s.Count(get), s.heard(1))
				}
			})
		})
	}
}

// While one operation waits for the backoff, the others wait for it, and in a bubble of synctest time goes on: no mutex is held.
func TestStream_OthersWait(t *testing.T) {
	for name, call := range map[string]func(context.Context, grpc.ClientStream) error{
		"SendMsg":   func(_ context.Context, s grpc.ClientStream) error { return s.SendMsg(wrapperspb.String("b")) },
		"CloseSend": func(_ context.Context, s grpc.ClientStream) error { return s.CloseSend() },
		"Context":   func(_ context.Context, s grpc.ClientStream) error { return s.Context().Err() },
		"Header":    func(_ context.Context, s grpc.ClientStream) error { _, err := s.Header(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.SendHeader(nil), moves.Receive(1), say("ok")))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "a")
				began := time.Now()
				var both sync.WaitGroup
				both.Go(func() {
					time.Sleep(50 * ms)
					err := call(t.Context(), stream)
					if took := time.Since(began); err != nil || took != 100*ms {
						t.Errorf("%v after %v; want it when the backoff is over", err, took)
					}
				})
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				both.Wait()
				if took := time.Since(began); err != nil || took != 100*ms {
					t.Errorf("RecvMsg: %v after %v", err, took)
				}
			})
		})
	}
}

// SendMsg finds that the attempt has ended from which RecvMsg receives: RecvMsg says how, and one of them retries.
func TestStream_SendBesideReceive(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return slowReceiver{stream}
			}
			return stream
		})
		s.On(get, moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.Receive(2), say("ok")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		began := time.Now()
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(ms)
			err := stream.SendMsg(wrapperspb.String("b"))
			if took := time.Since(began); err != nil || took != 2*time.Second+100*ms {
				t.Errorf("SendMsg: %v after %v; want it after RecvMsg and the backoff", err, took)
			}
		})
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Error(err)
		}
		both.Wait()
		if got := fmt.Sprint(s.heard(1)); s.Count(get) != 2 || got != "[a b]" {
			t.Errorf("%d attempts; the second has received %s", s.Count(get), got)
		}
	})
}

// perAttemptTimeout and hedgingPolicy don't apply to client and bidi streams, before the first message as well as in SendMsg.
func TestStream_UploadsAreNeverSlow(t *testing.T) {
	for name, c := range map[string]spec.Config{"timeout": config(hasty()), "beside": config(besides()), "hedges": hedged()} {
		for kind, desc := range kinds() {
			if !desc.ClientStreams {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, moves.Play(moves.Receive(0), moves.Pause(time.Minute), say("ok")))
					stream := s.open(t, t.Context(), desc)
					send(t, stream, "a")
					time.Sleep(time.Minute)
					send(t, stream, "b")
					_ = stream.CloseSend()
					if got, err := receive(stream); fmt.Sprint(got) != "[ok]" || err != io.EOF || s.Count(get) != 1 {
						t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
					}
				})
			})
		}
	}
}

// A stream of one attempt, and one that is committed, keep nothing, and each operation is one call of gRPC's stream.
func TestStream_CommittedIsGRPCs(t *testing.T) {
	type counts struct{ send, receive, close int }
	for name, row := range map[string]struct {
		opts   []grpc.CallOption
		commit func(grpc.ClientStream)
	}{
		"one attempt":  {opts: []grpc.CallOption{interceptor.MaxAttempts(1)}},
		"by a context": {commit: func(s grpc.ClientStream) { s.Context() }},
		"by headers":   {commit: func(s grpc.ClientStream) { _, _ = s.Header() }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				var n counts
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					return counting{stream, &n.send, &n.receive, &n.close}
				})
				s.On(get, moves.Play(moves.SendHeader(nil), moves.Echo(0)))
				stream := s.open(t, t.Context(), bidiStream, row.opts...)
				if row.commit != nil {
					row.commit(stream)
				}
				n = counts{}
				for range 10 {
					send(t, stream, "a")
					if kept := s.retrier.Replayed(); kept != 0 {
						t.Fatalf("%d bytes are kept", kept)
					}
				}
				_ = stream.CloseSend()
				if got, err := receive(stream); len(got) != 10 || err != io.EOF || n != (counts{10, 11, 1}) {
					t.Errorf("%v, %v; calls of gRPC's stream: %+v", got, err, n)
				}
			})
		})
	}
}

// counting counts the calls of a stream.
type counting struct {
	grpc.ClientStream

	sends, receives, closes *int
}

func (c counting) SendMsg(m any) error { *c.sends++; return c.ClientStream.SendMsg(m) }
func (c counting) RecvMsg(m any) error { *c.receives++; return c.ClientStream.RecvMsg(m) }
func (c counting) CloseSend() error    { *c.closes++; return c.ClientStream.CloseSend() }

// A message that isn't protobuf's commits the stream before it is sent: a codec that gives its buffers away is asked once.
func TestStream_ForeignMessageIsSentOnce(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream, grpc.ForceCodec(jsonStructs{}))
		synctest.Wait()
		_ = stream.SendMsg(new(jsonOrder))
		err := stream.RecvMsg(new(jsonOrder))
		e, _ := err.(*interceptor.Error)
		if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != "unsendable" || s.Count(get) != 1 {
			t.Errorf("%v after %d attempts", err, s.Count(get))
		}
	})
}

// The time of a response begins when the server has the whole request and the application waits for it, whatever commits the stream: the
// extra attempt of this policy gets its cost twice if it was answered within a second.
func TestStream_ResponseTime(t *testing.T) {
	for name, row := range map[string]struct {
		desc     *grpc.StreamDesc
		answer   time.Duration
		early    bool // RecvMsg waits before the request is whole
		refunded int
	}{
		"server stream":                    {serverStream, 900 * ms, false, 1},
		"server stream, late":              {serverStream, 1100 * ms, false, 0},
		"one message each way":             {&grpc.StreamDesc{}, 900 * ms, false, 1},
		"client stream":                    {clientStream, 900 * ms, false, 1},
		"client stream, received early":    {clientStream, 900 * ms, true, 1},
		"bidi stream, received early":      {bidiStream, 900 * ms, true, 1},
		"bidi stream without a time limit": {bidiStream, time.Minute, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Budget, retry.PerAttemptTimeout, retry.OnAttemptTimeout = "", time.Second, "RETRY"
			retry.MaxAttempts = 2
			p := &purse{grants: 9}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, moves.Play().Then(down()), moves.Play(moves.Receive(0), moves.Pause(row.answer), say("a")))
				stream := s.open(t, t.Context(), row.desc)
				synctest.Wait()
				send(t, stream, "x") // finds the failure of the first attempt, or the next call does
				ask := func() {
					time.Sleep(time.Hour) // an upload takes its time
					_ = stream.CloseSend()
				}
				if row.early {
					go ask()
				} else {
					ask()
				}
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
					t.Fatal(err)
				}
				if row.desc.ServerStreams {
					_ = stream.RecvMsg(new(wrapperspb.StringValue))
				}
				if p.refunded != row.refunded {
					t.Errorf("the budget: %s; want %d refunded", p, row.refunded)
				}
			}, interceptor.WithBudget("", forAll(p)))
		})
	}
}

// Observers hear of an attempt and its decision in order, in the goroutine that has found the end, and other operations wait meanwhile.
// OnFinish and CallEnd may use the stream.
func TestStream_ObserversBlock(t *testing.T) {
	var told []string
	slow := interceptor.Observer{
		Attempt: func(_ context.Context, e interceptor.Event) {
			time.Sleep(time.Second)
			told = append(told, fmt.Sprint("attempt ", e.Attempt))
		},
		Decision: func(_ context.Context, e interceptor.Event) {
			time.Sleep(time.Second)
			told = append(told, fmt.Sprint("decision ", e.Attempt, " ", e.Reason))
		},
	}
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.Receive(2), say("ok")))
		var stream grpc.ClientStream
		s.retrier.AddObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.Event) {
			told = append(told, fmt.Sprint("end ", stream.RecvMsg(new(wrapperspb.StringValue))))
		}})
		stream = s.open(t, t.Context(), bidiStream, grpc.OnFinish(func(err error) {
			stream.Context()
			told = append(told, fmt.Sprint("finish ", err))
		}))
		send(t, stream, "a")
		began := time.Now()
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(ms)
			send(t, stream, "b")
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("SendMsg returns after %v; want it after two observers, in whose time the backoff passes", took)
			}
			_ = stream.CloseSend()
		})
		if got, err := receive(stream); fmt.Sprint(got) != "[ok]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		both.Wait()
		if want := "[attempt 1 decision 1 retry attempt 2 finish <nil> end EOF]"; fmt.Sprint(told) != want {
			t.Errorf("told %v; want %s", told, want)
		}
	}, interceptor.WithObserver(slow))
}

// A stream in mode OBSERVE keeps nothing, and still knows what would have committed it.
func TestStream_ObserveKeepsNothing(t *testing.T) {
	observed := plain()
	c := config(observed)
	c.Methods[0].Mode = "OBSERVE"
	for name, row := range map[string]struct {
		opts   []grpc.CallOption
		reason policy.Reason
	}{
		"kept":        {nil, policy.ReasonRetry},
		"buffer full": {[]grpc.CallOption{grpc.MaxRetryRPCBufferSize(10)}, policy.ReasonCommitted},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(2)).Then(down()))
				stream := s.open(t, t.Context(), bidiStream, row.opts...)
				for range 2 {
					send(t, stream, strings.Repeat("x", 1000))
					if kept := s.retrier.Replayed(); kept != 0 {
						t.Errorf("%d bytes are kept", kept)
					}
				}
				_, err := receive(stream)
				if status.Code(err) != codes.Unavailable || s.Count(get) != 1 || len(s.decisions) == 0 || s.decisions[0].Reason != row.reason {
					t.Errorf("%v, decisions %+v; want one with %s", err, s.decisions, row.reason)
				}
			})
		})
	}
}

// A quiet watch lives over any number of cuts: each attempt that ran for ten seconds is progress, with or without a message, and costs
// the budget nothing. Of attempts that have ended, the stream keeps nothing.
func TestForever_Quiet(t *testing.T) {
	const day = 24 * 60
	for name, first := range map[string]testserver.Step{
		"after a message":  feed(1, 0, down().Delay(time.Minute)),
		"without messages": down().Delay(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Budget = "small" // it pays for one cut in five minutes
			c := config(retry)
			c.Budgets = []spec.Budget{{Name: "small", Config: budget.BucketConfig{Size: 2, SlowCost: 1, RefillTime: 10 * time.Minute, Window: time.Second}}}
			play(t, c, func(t *testing.T, s scene) {
				var streams []weak.Pointer[attemptOf]
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					made := &attemptOf{stream}
					streams = append(streams, weak.Make(made))
					return made
				})
				steps := []testserver.Step{first.Times(1), moves.Play(moves.Receive(1), moves.Pause(time.Minute)).Then(down()).Times(day), feed(1, 0)}
				s.On(get, steps...)
				began := time.Now()
				if _, err := s.watch(t.Context(), t); err != io.EOF {
					t.Errorf("%v (%s) after %v", err, reasonOf(err), time.Since(began))
				}
				if n := s.Count(get); n != day+2 {
					t.Errorf("%d attempts", n)
				}
				if want := (day + 1) * (time.Minute + 100*ms); time.Since(began) != want {
					t.Errorf("after %v; want the first backoff after each cut: %v", time.Since(began), want)
				}
				runtime.GC()
				alive := 0
				for _, p := range streams[:len(streams)-1] {
					if p.Value() != nil {
						alive++
					}
				}
				if alive > 1 {
					t.Errorf("%d of %d ended attempts are kept", alive, len(streams))
				}
			})
		})
	}
}

// attemptOf is an inner interceptor's stream.
type attemptOf struct{ grpc.ClientStream }

// Attempts that are cut sooner are no progress without a message, and pay.
func TestForever_CutSoon(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	p := &purse{grants: 99}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, feed(1, 0, down()).Times(1), moves.Play(moves.Receive(1), moves.Pause(9*time.Second)).Then(down()))
		_, err := s.watch(t.Context(), t)
		if reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 4 || p.wasted != 3 {
			t.Errorf("%v (%s) after %d attempts; the budget: %s", err, reasonOf(err), s.Count(get), p)
		}
	}, interceptor.WithBudget("", forAll(p)))
}
