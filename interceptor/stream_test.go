// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// What users may rely on in a stream, and the tests that show it, all through gRPC:
//
//	rule                                                                       tests
//	1  NewStream opens the first attempt; the operation that finds a failure   TestStream_OperationsRetry, TestStream_OthersWait,
//	   waits, opens the next attempt and replays, and others wait; no mutex    TestStream_SendBesideReceive
//	   is held meanwhile
//	2  attempts follow slow ones on streams of one request, while RecvMsg or   TestStreamRules_SlowMeansWaitedFor, TestStreamHedge_…,
//	   Header waits; never on client and bidi streams                          TestStreamHeader_Hedged, TestStream_UploadsAreNeverSlow,
//	                                                                           TestMessages_NoHintForManyRequests (the warning)
//	3  a stream of one attempt, or that is committed, is gRPC's: one call      TestStream_CommittedIsGRPCs, TestStreamSingle_…,
//	   each, nothing kept; without policy and listener it is gRPC's own        TestStreamPassed_…
//	4  an end is found by an operation, the context or the connection; an      TestStreamAttempt_ReleasedByGRPCsRules, …_ClosedAndForgotten,
//	   application that does neither keeps what the call holds                 …_CancelInEveryState, TestStreamRules_EndsWithItsContext
//	5  commit as in gRPC; a message that isn't protobuf's commits before it    TestStreamCommit, TestStreamCommit_BufferLimits,
//	   is sent                                                                 TestStream_ForeignMessageIsSentOnce
//	6  latency counts from the whole request, when the application waits       TestStream_ResponseTime, TestStreamCalls_AnswerTime
//	7  observers hear of attempts and decisions in order while others wait;    TestStream_ObserversBlock, TestStreamCalls_OnFinishAsks,
//	   OnFinish and CallEnd may use the stream                                 TestStreamEnd_OnFinishWaitsForTheSender
//	8  a panic comes up, and what the call holds is released                   TestPanic_…
//	9  one goroutine at a time sends to an attempt, one receives; each is      TestStreamRules_OneAtATime, TestStreamResend_…
//	   sent a prefix of the messages, reported once, and released
//	10 messages, headers, context and trailer are of one attempt; messages     TestStreamRules_OneAttempt, TestStreamSingle_SlowReader,
//	   that arrived before the end are returned                                TestStreamEnd_MessagesHeldBeyondTheContext
//	11 mode OBSERVE keeps nothing                                              TestStream_ObserveKeepsNothing
//	12 a resumed stream lives over any number of cuts, and keeps nothing of    TestForever_Quiet, TestForever_CutSoon, TestForever_Memory,
//	   ended attempts                                                          TestResume_…
//	13 operations may come in any order, from several goroutines: a stream     TestStreamOrder_…, TestResume_SendMsgIsStillInside,
//	   of gRPC has one receive at a time, what was sent stays sent, and all    TestLone and TestLoneResumed in lab/proof
//	   ends at the deadline

// overlap is an inner interceptor's stream that notices two goroutines in one direction of its attempt.
type overlap struct {
	grpc.ClientStream
	*overlaps

	sending, receiving atomic.Int32
	closes             atomic.Int32
}

// overlaps are what the streams of a call have noticed.
type overlaps struct {
	mu   sync.Mutex
	list []string
}

func (o *overlaps) add(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, text)
}

// watch calls f, and reports another call that is inside.
func (o *overlaps) watch(inside *atomic.Int32, what string, f func() error) error {
	if inside.Add(1) > 1 {
		o.add("two goroutines are in " + what)
	}
	defer inside.Add(-1)
	time.Sleep(ms) // so that they would meet
	return f()
}

func (o *overlap) SendMsg(m any) error {
	if o.closes.Load() > 0 {
		o.add("SendMsg after CloseSend")
	}
	return o.watch(&o.sending, "SendMsg", func() error { return o.ClientStream.SendMsg(m) })
}

func (o *overlap) CloseSend() error {
	if o.closes.Add(1) > 1 {
		o.add("two CloseSends")
	}
	return o.watch(&o.sending, "SendMsg and CloseSend", o.ClientStream.CloseSend)
}

func (o *overlap) RecvMsg(m any) error {
	return o.watch(&o.receiving, "RecvMsg", func() error { return o.ClientStream.RecvMsg(m) })
}

// retriedPolicies are the policies with which a stream may have several attempts.
func retriedPolicies() map[string]spec.Config {
	beside := hasty()
	beside.OnAttemptTimeout = ""
	return map[string]spec.Config{
		"retried": config(plain()), "replaced when slow": config(hasty()), "beside a slow one": config(beside), "hedged": hedged(),
	}
}

// A sender, a receiver, and calls of Header and Context, each in its own goroutine, meet three attempts that fail at different
// times, and one that succeeds. Nothing is sent or received twice at once, every attempt is reported once, and all that was taken is
// given back.
func TestStreamRules_OneAtATime(t *testing.T) {
	for name, c := range retriedPolicies() {
		for kind, desc := range kinds() {
			for _, optionsKept := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/options kept %v", name, kind, optionsKept), func(t *testing.T) {
					paid(c)
					f, p := &fuse{limit: 100}, &purse{grants: 100}
					play(t, c, func(t *testing.T, s scene) {
						for round := range 12 {
							s.Reset()
							s.attempts, s.calls = nil, nil
							s.noOverlap(t, desc, round, optionsKept)
							if left := held(s.retrier, f, p); left != "" || s.retrier.Replayed() != 0 {
								t.Errorf("round %d: %s, %d bytes kept", round, left, s.retrier.Replayed())
							}
						}
					}, withFuse(f), interceptor.WithBudget("", forAll(p)))
				})
			}
		}
	}
}

// noOverlap makes a stream with attempts that end at times which depend on round.
func (s scene) noOverlap(t *testing.T, desc *grpc.StreamDesc, round int, optionsKept bool) {
	t.Helper()
	seen := new(overlaps)
	conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
			opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			if optionsKept {
				opts = nil
			}
			stream, err := open(ctx, desc, cc, method, opts...)
			return &overlap{ClientStream: stream, overlaps: seen}, err
		}))...)
	answer := faults.Play(faults.Receive(0), say("sum"))
	if desc.ServerStreams {
		answer = faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Pause(2*ms), say("a", "b"), faults.Receive(0), say("c"))
	}
	s.On(get,
		faults.Play(faults.Receive(1+round%3)).Then(down().Delay(time.Duration(round)*ms)),
		down().Delay(time.Duration(round%4)*ms),
		faults.Play(faults.Receive(1), faults.Pause(ms)).Then(down()),
		answer)
	messages := []string{"1"}
	if desc.ClientStreams {
		messages = []string{"1", "2", "3", "4", "5"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := conn.NewStream(ctx, desc, get)
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		for _, text := range messages {
			_ = stream.SendMsg(wrapperspb.String(text)) // io.EOF if Context has committed the call to an attempt that fails
			time.Sleep(time.Duration(round%5) * ms)
		}
		_ = stream.CloseSend()
	})
	var got []string
	calls.Go(func() { got, err = receive(stream) })
	calls.Go(func() { time.Sleep(time.Duration(round) * 20 * ms); _, _ = stream.Header() })
	if round%4 == 3 {
		calls.Go(func() { time.Sleep(time.Duration(round) * 30 * ms); stream.Context() })
	}
	calls.Wait()
	cancel()
	time.Sleep(2 * time.Second) // if OnFinish never comes
	synctest.Wait()
	for n, a := range s.Attempts() {
		heard := strings.Join(s.heard(n), "")
		closed := a.HalfClosed
		if all := strings.Join(messages, ""); !strings.HasPrefix(all, heard) || closed && heard != all {
			t.Errorf("round %d: attempt %d received %s, closed %v", round, n+1, heard, closed)
		}
	}
	if whole := fmt.Sprint(got); err == io.EOF && whole != "[sum]" && whole != "[a b c]" {
		t.Errorf("round %d: success with %v", round, got)
	}
	reported := map[int]bool{}
	for _, a := range s.attempts {
		if reported[a.Attempt] {
			t.Errorf("round %d: attempt %d is reported twice", round, a.Attempt)
		}
		reported[a.Attempt] = true
	}
	if len(reported) != s.Count(get) || len(s.calls) != 1 || len(seen.list) > 0 {
		t.Errorf("round %d: %d of %d attempts are reported, and %d ends; %v", round, len(reported), s.Count(get), len(s.calls), seen.list)
	}
}

// slowReceiver is a stream whose RecvMsg returns later than gRPC's.
type slowReceiver struct{ grpc.ClientStream }

func (s slowReceiver) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	time.Sleep(2 * time.Second)
	return err
}

// Whatever the application asks for first, all that it gets is of one attempt.
func TestStreamRules_OneAttempt(t *testing.T) {
	number := func(stream grpc.ClientStream) string {
		n, _ := interceptor.AttemptFromContext(stream.Context())
		return fmt.Sprint(n)
	}
	header := func(stream grpc.ClientStream) string {
		md, _ := stream.Header()
		return strings.Join(md["who"], "")
	}
	message := func(stream grpc.ClientStream) string {
		m := new(wrapperspb.StringValue)
		_ = stream.RecvMsg(m)
		return m.GetValue()
	}
	for first, order := range map[string][]func(grpc.ClientStream) string{
		"Header first": {header, number, message}, "RecvMsg first": {message, header, number}, "Context first": {number, message, header},
	} {
		for name, c := range retriedPolicies() {
			t.Run(first+"/"+name, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					answer := func(who string) testserver.Step {
						md := metadata.Pairs("who", who)
						return faults.Play(faults.Receive(1), faults.SendHeader(md), faults.Pause(ms), say(who)).Trailer(md)
					}
					s.On(get, down(), answer("2"), answer("3"))
					if first == "Context first" { // it commits to the first attempt
						s.On(get, answer("1"), answer("2"))
					}
					stream := s.open(t, t.Context(), serverStream)
					send(t, stream, "x")
					want := order[0](stream)
					for _, ask := range order[1:] {
						if got := ask(stream); got != want {
							t.Errorf("%s, then %s", want, got)
						}
					}
					_, err := receive(stream)
					if trailer := strings.Join(stream.Trailer()["who"], ""); err != io.EOF || trailer != want {
						t.Errorf("%v, trailer of %s; want that of %s", err, trailer, want)
					}
				})
			})
		}
	}
}

// While the server says nothing, every call of the application returns when its context is over: at its deadline, when it is cancelled,
// while the stream opens, while it runs, and between attempts.
func TestStreamRules_EndsWithItsContext(t *testing.T) {
	asks := map[string]func(ctx context.Context, stream grpc.ClientStream){
		"RecvMsg": func(_ context.Context, stream grpc.ClientStream) { _ = stream.RecvMsg(new(wrapperspb.StringValue)) },
		"Header":  func(_ context.Context, stream grpc.ClientStream) { _, _ = stream.Header() },
		"Context": func(_ context.Context, stream grpc.ClientStream) {
			select {
			case <-stream.Context().Done():
			case <-time.After(time.Hour):
			}
		},
		"SendMsg, then RecvMsg": func(ctx context.Context, stream grpc.ClientStream) {
			for stream.SendMsg(wrapperspb.String(strings.Repeat("x", 20<<10))) == nil && stream.Trailer() == nil {
				select {
				case <-ctx.Done(): // it is over at the moment at which a sleep of whole milliseconds ends, too
				case <-time.After(ms):
				}
			}
		},
	}
	for name, c := range retriedPolicies() {
		for kind, desc := range kinds() {
			for ask, f := range asks {
				if ask == "SendMsg, then RecvMsg" && !desc.ClientStreams {
					continue
				}
				for state, step := range map[string]testserver.Step{
					"hanging": testserver.Hang(), "between attempts": down().Pushback("60000"),
				} {
					if ask == "Context" && state == "between attempts" {
						continue // it commits the call to the attempt that fails, so none follows
					}
					t.Run(fmt.Sprintf("%s/%s/%s/%s", name, kind, ask, state), func(t *testing.T) {
						play(t, c, func(t *testing.T, s scene) {
							s.On(get, step)
							const after = 30 * time.Second // the backoff of "between attempts" goes on for longer
							ctx, cancel := context.WithCancel(t.Context())
							start := time.Now()
							time.AfterFunc(after, cancel)
							stream := s.open(t, ctx, desc)
							send(t, stream, "x")
							f(ctx, stream)
							if _, err := receive(stream); status.Code(err) != codes.Canceled || time.Since(start) != after {
								t.Errorf("%v after %v; want CANCELED after %v", err, time.Since(start), after)
							}
							synctest.Wait()
							if len(s.calls) != 1 || len(s.attempts) != s.Count(get) {
								t.Errorf("%d calls and %d of %d attempts have ended", len(s.calls), len(s.attempts), s.Count(get))
							}
						})
					})
				}
			}
		}
	}
}

// A stream is cancelled at every moment of its life. It ends with CANCELLED or a server's error, or with success after all messages.
// OnFinish and observers are told the same, but for a success that arrives as the stream is cancelled.
func TestStreamRules_GivenUpIsNoSuccess(t *testing.T) {
	for name, c := range retriedPolicies() {
		for kind, desc := range kinds() {
			for _, headerFirst := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/header first %v", name, kind, headerFirst), func(t *testing.T) {
					play(t, c, func(t *testing.T, s scene) {
						for moment := 1; moment < 40; moment++ {
							s.Reset()
							s.calls = nil
							answer, want := faults.Play(faults.Receive(1), faults.Pause(ms), say("a")), "[a]"
							if desc.ServerStreams {
								answer, want = faults.Play(faults.Receive(1), faults.Pause(ms), say("a"), faults.Pause(ms), say("b"), faults.Pause(ms)), "[a b]"
							}
							s.On(get, faults.Play(faults.Receive(1), faults.Pause(ms)).Then(down()), answer)
							ctx, cancel := context.WithCancel(t.Context())
							time.AfterFunc(time.Duration(moment)*ms/2+95*ms*time.Duration(moment%2), cancel) // in the first attempt, and around the second
							var finished []error
							stream := s.open(t, ctx, desc, grpc.OnFinish(func(err error) { finished = append(finished, err) }))
							_ = stream.SendMsg(wrapperspb.String("x"))
							_ = stream.CloseSend()
							if headerFirst {
								_, _ = stream.Header()
							}
							got, err := receive(stream)
							synctest.Wait()
							ended := status.Code(streamEnd(err))
							if ended == codes.OK && fmt.Sprint(got) != want || ended != codes.OK && ended != codes.Canceled && ended != codes.Unavailable {
								t.Errorf("moment %d: %v, %v", moment, got, err)
							}
							if len(finished) != 1 || len(s.calls) != 1 || s.calls[0].Code != status.Code(finished[0]) {
								t.Fatalf("moment %d: OnFinish was told %v, observers %+v", moment, finished, s.calls)
							}
							// Cancelled before io.EOF, or before the server's error: as in gRPC, OnFinish is told so, and RecvMsg still returns what
							// had arrived.
							late := status.Code(finished[0]) == codes.Canceled
							if status.Code(finished[0]) != ended && !late {
								t.Errorf("moment %d: RecvMsg returns %v, OnFinish was told %v, observers %+v", moment, err, finished, s.calls)
							}
							cancel()
						}
					})
				})
			}
		}
	}
}

// receipts counts the calls of RecvMsg.
type receipts struct {
	grpc.ClientStream

	count *atomic.Int32
}

func (r receipts) RecvMsg(m any) error {
	r.count.Add(1)
	return r.ClientStream.RecvMsg(m)
}

// Messages lie with gRPC until the application receives them, in however many attempts.
func TestStreamRules_NobodyReceivesAhead(t *testing.T) {
	for name, c := range retriedPolicies() {
		for kind, desc := range kinds() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					var count atomic.Int32
					s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return receipts{stream, &count} })
					s.On(get, faults.Play(faults.Receive(1), say("a"), faults.Pause(time.Hour)))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					time.Sleep(time.Minute)
					if _, err := stream.Header(); err != nil || count.Load() != 0 {
						t.Errorf("%v; RecvMsg was called %d times, though the application did not receive", err, count.Load())
					}
					if desc.ServerStreams {
						if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil || count.Load() != 1 {
							t.Errorf("%v; RecvMsg was called %d times; want 1", err, count.Load())
						}
					}
				})
			})
		}
	}
}

// The clock of an attempt runs while the application waits in RecvMsg or Header, and not while it does something else.
func TestStreamRules_SlowMeansWaitedFor(t *testing.T) {
	for name, c := range retriedPolicies() {
		if name == "retried" {
			continue // no attempt is slow
		}
		for ask, wait := range map[string]func(stream grpc.ClientStream){
			"RecvMsg": func(stream grpc.ClientStream) { _ = stream.RecvMsg(new(wrapperspb.StringValue)) },
			"Header":  func(stream grpc.ClientStream) { _, _ = stream.Header() },
		} {
			t.Run(name+"/"+ask, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.connect()
					s.On(get, testserver.Hang(), testserver.Hang(), faults.Play(faults.Receive(1), say("a")))
					stream := s.open(t, t.Context(), serverStream)
					send(t, stream, "x")
					time.Sleep(10 * time.Second) // the application does something else
					if got := s.Count(get); got != 1 {
						t.Errorf("%d attempts were sent, though nobody waits", got)
					}
					wait(stream)
					want := "[0s 11.1s 12.3s]"
					if name == "hedged" {
						want = "[0s 10.1s 10.2s]"
					}
					if s.sent() != want {
						t.Errorf("attempts were sent at %s; want %s", s.sent(), want)
					}
				})
			})
		}
	}
}

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
				s.On(get, faults.Play(faults.Receive(1)).Then(down()), faults.Play(faults.Receive(1), faults.SendHeader(nil), say("ok"), faults.Receive(0)))
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
				s.On(get, faults.Play(faults.Receive(1)).Then(down()), faults.Play(faults.SendHeader(nil), say("ok"), faults.Pause(time.Second)))
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
		s.On(get, faults.Play(faults.Receive(1)).Then(down()), faults.Play(faults.Receive(2), say("ok")))
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
					s.On(get, faults.Play(faults.Receive(0), faults.Pause(time.Minute), say("ok")))
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
				s.On(get, faults.Play(faults.SendHeader(nil), faults.Echo(0)))
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
		s.On(get, faults.Play().Then(down()))
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
				s.On(get, faults.Play().Then(down()), faults.Play(faults.Receive(0), faults.Pause(row.answer), say("a")))
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
		s.On(get, faults.Play(faults.Receive(1)).Then(down()), faults.Play(faults.Receive(2), say("ok"), faults.Pause(time.Second)))
		var stream grpc.ClientStream
		s.retrier.AddObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.CallEnd) {
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
				s.On(get, faults.Play(faults.Receive(2)).Then(down()))
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
	const cuts = 2 * 60
	afterMessage, quiet := feed(1, 0, down().Delay(time.Minute)), down().Delay(time.Minute)
	bucket := budget.BucketConfig{Size: 1, SlowCost: 1} // pays for one cut
	throttle := budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}
	for name, row := range map[string]struct {
		first  testserver.Step
		budget budget.Config
	}{
		"after a message":            {afterMessage, bucket},
		"without messages":           {quiet, bucket},
		"with gRPC's throttle":       {afterMessage, throttle},
		"throttled without messages": {quiet, throttle},
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Budget = "small"
			c := config(retry)
			c.Budgets = []spec.Budget{{Name: "small", Config: row.budget}}
			play(t, c, func(t *testing.T, s scene) {
				var streams []weak.Pointer[attemptOf]
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					made := &attemptOf{stream}
					streams = append(streams, weak.Make(made))
					return made
				})
				steps := []testserver.Step{row.first.Times(1), faults.Play(faults.Receive(1), faults.Pause(time.Minute)).Then(down()).Times(cuts), feed(1, 0)}
				s.On(get, steps...)
				began := time.Now()
				if _, err := s.watch(t.Context(), t); err != io.EOF {
					t.Errorf("%v (%s) after %v", err, reasonOf(err), time.Since(began))
				}
				if n := s.Count(get); n != cuts+2 {
					t.Errorf("%d attempts", n)
				}
				if want := (cuts + 1) * (time.Minute + 100*ms); time.Since(began) != want {
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
		s.On(get, feed(1, 0, down()).Times(1), faults.Play(faults.Receive(1), faults.Pause(9*time.Second)).Then(down()))
		_, err := s.watch(t.Context(), t)
		if reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 4 || p.wasted != 3 {
			t.Errorf("%v (%s) after %d attempts; the budget: %s", err, reasonOf(err), s.Count(get), p)
		}
	}, interceptor.WithBudget("", forAll(p)))
}

var (
	serverStream = &grpc.StreamDesc{ServerStreams: true}
	clientStream = &grpc.StreamDesc{ClientStreams: true}
	bidiStream   = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
)

// described makes the types of GetOrder known to the Retrier, as linked generated code does.
func described(t *testing.T) interceptor.Option {
	t.Helper()
	text := new(".google.protobuf.StringValue")
	return interceptor.WithDescriptors(mustFiles(t, protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
		&descriptorpb.FileDescriptorProto{
			Name: new("orders.proto"), Package: new("acme.orders.v1"), Syntax: new("proto3"),
			Dependency: []string{"google/protobuf/wrappers.proto"},
			Service: []*descriptorpb.ServiceDescriptorProto{{
				Name:   new("OrderService"),
				Method: []*descriptorpb.MethodDescriptorProto{{Name: new("GetOrder"), InputType: text, OutputType: text}},
			}},
		}))
}

// open begins a stream; a failure ends the test.
func (s scene) open(t *testing.T, ctx context.Context, desc *grpc.StreamDesc, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	return testkit.Must(s.conn.NewStream(ctx, desc, get, opts...))(t)
}

func send(t *testing.T, stream grpc.ClientStream, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := stream.SendMsg(wrapperspb.String(text)); err != nil {
			t.Fatalf("SendMsg(%s): %v", text, err)
		}
	}
}

func say(texts ...string) faults.Move {
	var messages []proto.Message
	for _, text := range texts {
		messages = append(messages, wrapperspb.String(text))
	}
	return faults.Send(messages...)
}

// heard returns the messages that the server received in its n-th attempt, from 0.
func (s scene) heard(n int) (texts []string) {
	for _, data := range s.Attempts()[n].Requests {
		m := new(wrapperspb.StringValue)
		if err := proto.Unmarshal(data, m); err != nil {
			return append(texts, err.Error())
		}
		texts = append(texts, m.GetValue())
	}
	return texts
}

func TestStream_NotOpened(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(500*ms, s.Up)
		time.AfterFunc(600*ms, s.conn.ResetConnectBackoff)
		s.On(get, faults.Play(faults.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// heardBy returns the messages that the server received in every attempt.
func (s scene) heardBy() (all []string) {
	synctest.Wait()
	for n, a := range s.Attempts() {
		heard := fmt.Sprint(s.heard(n))
		if a.HalfClosed {
			heard += "."
		}
		all = append(all, heard)
	}
	return all
}

// overOnce reports whether the only call has ended once, with a code and no wait.
func (s scene) overOnce(t *testing.T, want codes.Code, attempts int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 || s.calls[0].Code != want || s.Count(get) != attempts || s.retrier.Replayed() != 0 {
		t.Errorf("%d attempts, %d bytes kept, calls %+v; want one with %s after %d attempts",
			s.Count(get), s.retrier.Replayed(), s.calls, want, attempts)
	}
}

// kinds are the three kinds of streams.
func kinds() map[string]*grpc.StreamDesc {
	return map[string]*grpc.StreamDesc{"server": serverStream, "client": clientStream, "bidi": bidiStream}
}

// whole makes a stream with one message each way, and returns its messages, its end and its duration.
func (s scene) whole(t *testing.T, desc *grpc.StreamDesc, opts ...grpc.CallOption) (got string, took time.Duration, err error) {
	t.Helper()
	start := time.Now()
	stream := s.open(t, t.Context(), desc, opts...)
	send(t, stream, "x")
	_ = stream.CloseSend()
	texts, err := receive(stream)
	took = time.Since(start)
	synctest.Wait() // observers are told by whoever has ended the call, and RecvMsg does not wait for them
	return fmt.Sprint(texts), took, err
}

// inside dials with an interceptor inside the Retrier's: it wraps the stream of the n-th attempt, from 1.
func (s scene) inside(t *testing.T, wrap func(n int, stream grpc.ClientStream) grpc.ClientStream) *grpc.ClientConn {
	t.Helper()
	return s.within(t, func(_ context.Context, n int, stream grpc.ClientStream) grpc.ClientStream { return wrap(n, stream) }).conn
}

func TestStream_Disable(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream, interceptor.Disable())
		send(t, stream, "x")
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 1 || len(s.calls) != 0 {
			t.Errorf("%v after %d attempts, calls %+v", err, s.Count(get), s.calls)
		}
	})
}

// within gives the scene a connection on which inner sees each attempt n of a stream, from 1.
func (s scene) within(t *testing.T, inner func(ctx context.Context, n int, stream grpc.ClientStream) grpc.ClientStream) scene {
	t.Helper()
	n := 0
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			n++
			return inner(ctx, n, stream), nil
		}))...)
	return s
}

// failing takes a message and fails.
func failing() testserver.Step { return faults.Play(faults.Receive(1)).Then(down()) }

// Without retries, no message is kept, but that is not the reason for the end.
func TestStream_OneAttemptExhausted(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"by policy": nil, "by the call": {interceptor.MaxAttempts(1)}} {
		t.Run(name, func(t *testing.T) {
			c := spec.Config{}
			if options != nil {
				c = config(plain())
			}
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1)).Then(down()))
				stream := s.open(t, t.Context(), bidiStream, options...)
				send(t, stream, "a")
				if got := s.retrier.Replayed(); got != 0 {
					t.Errorf("%d bytes are kept", got)
				}
				_, err := receive(stream)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil || e.Reason == policy.ReasonCommitted || e.Commit != "" || status.Code(err) != codes.Unavailable {
					t.Errorf("%v, %+v", err, e)
				}
			})
		})
	}
}

func TestStream_Compressed(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(0)).Then(down()), faults.Play(faults.Echo(0)))
		p := new(payloads)
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithStatsHandler(p))...)
		stream := testkit.Must(conn.NewStream(t.Context(), bidiStream, get, grpc.UseCompressor(gzip.Name)))(t)
		long := strings.Repeat("long ", 10_000) // 50 KB, in gRPC's own buffers
		send(t, stream, long, "short", long)
		_ = stream.CloseSend()
		got, err := receive(stream)
		if err != io.EOF || len(got) != 3 || got[0] != long || got[1] != "short" || got[2] != long {
			t.Errorf("%d messages, %v", len(got), err)
		}
		if p.squeezed != 4 || len(p.sent) != 6 {
			t.Errorf("%d of %d messages were compressed; want two of three in each of two attempts", p.squeezed, len(p.sent))
		}
	})
}

// payloads is a stats handler that records sent messages, and the results of attempts.
type payloads struct {
	mu   sync.Mutex // guards all
	sent []any
	ends []codes.Code

	squeezed int // messages that compression has made smaller by half
}

func (*payloads) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*payloads) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*payloads) HandleConn(context.Context, stats.ConnStats) {}

func (p *payloads) HandleRPC(_ context.Context, e stats.RPCStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case *stats.OutPayload:
		p.sent = append(p.sent, e.Payload)
		if 2*e.CompressedLength < e.Length {
			p.squeezed++
		}
	case *stats.End:
		p.ends = append(p.ends, status.Code(e.Error))
	}
}

// Whether a failure may be retried depends on what the application has seen or requested (gRFC A6, except headers that
// it has not requested).
func TestStreamCommit(t *testing.T) {
	from := metadata.Pairs("from", "1")
	failing := faults.Play(faults.Receive(1), faults.SendHeader(from), faults.Pause(time.Second)).Then(down())
	silent := faults.Play(faults.Receive(1), faults.Pause(time.Second)).Then(down())
	for name, row := range map[string]struct {
		script testserver.Step
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
		}, want: "2 succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.script, faults.Play(faults.Receive(1), say("a")))
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

// A message of 100 bytes takes 105 in the buffer: with its header, before compression.
func TestStreamCommit_BufferLimits(t *testing.T) {
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
					faults.Play(faults.Receive(0)).Then(down()),
					faults.Play(faults.Receive(0), say("ok")))
				stream := s.open(t, t.Context(), clientStream, row.opts...)
				for n := range 3 {
					testkit.NoError(t, stream.SendMsg(hundred(n)))
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

func TestStreamCommit_DefaultLimit(t *testing.T) {
	for size, want := range map[int]policy.Reason{256<<10 - 5: policy.ReasonSucceeded, 256<<10 - 4: policy.ReasonCommitted} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down(), faults.Play(faults.Receive(1), say("ok")))
				stream := s.open(t, t.Context(), serverStream)
				m := wrapperspb.String("")
				for n := size; proto.Size(m) != size; n-- { // its own header takes some bytes
					m.Value = strings.Repeat("x", n)
				}
				testkit.NoError(t, stream.SendMsg(m))
				if _, err := receive(stream); s.calls[0].Reason != want {
					t.Errorf("%v: %s; want %s", err, s.calls[0].Reason, want)
				}
			})
		})
	}
}

func TestStreamCommit_LetsGo(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), faults.Play(faults.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if got := s.retrier.Replayed(); got != 8 { // two strings of one byte would take 16
			t.Errorf("%d bytes are kept; want 8", got)
		}
		testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		synctest.Wait()
		send(t, stream, "b")
		if got := s.retrier.Replayed(); got != 0 {
			t.Errorf("%d bytes are kept after commitment", got)
		}
	})
}

// prepared is a message whose bytes only gRPC knows. It is prepared with another stream: that alone
// commits the stream that a message is prepared with.
func (s scene) prepared(t *testing.T) *grpc.PreparedMsg {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.On(other, testserver.Hang())
	stream := testkit.Must(s.conn.NewStream(ctx, bidiStream, other, interceptor.Disable()))(t)
	p := new(grpc.PreparedMsg)
	testkit.NoError(t, p.Encode(stream, wrapperspb.String("prepared")))
	return p
}

// committedBy checks how the only attempt of a stream has ended, and what has committed it, wherever that
// is told.
func (s scene) committedBy(t *testing.T, err error, want decision.Commit) {
	t.Helper()
	synctest.Wait() // the application's calls do not wait for observers
	e, ok := errors.AsType[*interceptor.Error](err)
	if !ok || e.Reason != policy.ReasonCommitted || e.Commit != string(want) || e.Attempts != 1 {
		t.Errorf("%v, %+v; want one attempt, committed by %q", err, e, want)
	}
	if d := s.decisions[len(s.decisions)-1]; d.Reason != policy.ReasonCommitted {
		t.Errorf("the decision is %+v; want committed by %q", d, want)
	}
}

func TestStreamCommit_Detail(t *testing.T) {
	var (
		message  = func(stream grpc.ClientStream, _ any) { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }
		headers  = func(stream grpc.ClientStream, _ any) { _, _ = stream.Header() }
		origin   = func(stream grpc.ClientStream, _ any) { stream.Context() }
		trailer  = func(stream grpc.ClientStream, _ any) { stream.Trailer() }
		much     = func(stream grpc.ClientStream, _ any) { _ = stream.SendMsg(wrapperspb.String("a")) }
		prepared = func(stream grpc.ClientStream, p any) { _ = stream.SendMsg(p) }
	)
	type looks []func(stream grpc.ClientStream, prepared any)
	for name, row := range map[string]struct {
		looks looks
		want  decision.Commit
	}{
		"a message":                  {looks{message}, decision.CommitMessage},
		"headers":                    {looks{headers}, decision.CommitHeaders},
		"the context":                {looks{origin}, decision.CommitContext},
		"the trailer, too early":     {looks{trailer, origin}, decision.CommitContext},
		"a full buffer":              {looks{much}, decision.CommitBufferFull},
		"a prepared message":         {looks{prepared}, decision.CommitPreparedMessage},
		"the context before all":     {looks{origin, headers, trailer, much, prepared, message}, decision.CommitContext},
		"headers before a message":   {looks{headers, message}, decision.CommitHeaders},
		"a message before headers":   {looks{message, headers}, decision.CommitMessage},
		"a buffer before a message":  {looks{much, message}, decision.CommitBufferFull},
		"a message, then a buffer":   {looks{message, much}, decision.CommitMessage},
		"prepared, then the context": {looks{prepared, origin}, decision.CommitPreparedMessage},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.SendHeader(metadata.Pairs("k", "v")), say("a"), faults.Pause(time.Second)).Then(down()))
				p := s.prepared(t)
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
				for _, look := range row.looks {
					look(stream, p)
				}
				_, err := receive(stream)
				s.committedBy(t, err, row.want)
			})
		})
	}
}

// refusing is an attempt that sends nothing, for a reason that another one might not have.
type refusing struct{ grpc.ClientStream }

func (refusing) SendMsg(any) error { return status.Error(codes.Unavailable, "refused") }

func TestStreamCommit_Unsendable(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return refusing{stream} })
		stream := testkit.Must(conn.NewStream(t.Context(), bidiStream, get))(t)
		s.committedBy(t, stream.SendMsg(wrapperspb.String("a")), decision.CommitUnsendable)
	})
}

// OnFinish runs when the answer is known, and may ask the stream.
func TestStreamCalls_OnFinishAsks(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), faults.Play(faults.Receive(1), say("a")).Header(metadata.Pairs("from", "2")).Trailer(metadata.Pairs("end", "2")))
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
		s.On(get, faults.Play(faults.SendHeader(nil), faults.Receive(1), say("enough")))
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
				stream := testkit.Must(conn.NewStream(ctx, serverStream, get))(t)
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
				s.On(get, faults.Play().Then(testserver.Fail(codes.NotFound)))
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
		s.On(get, faults.Play().Then(down()), faults.Play(faults.Pause(500*ms), say("a"), faults.Pause(time.Hour), say("b")))
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
			stream := testkit.Must(conn.NewStream(ctx, bidiStream, get, grpc.Peer(&from)))(t)
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
				s.On(get, faults.Play(faults.SendRaw([]byte{0xff})))
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
		s.On(get, faults.Play(faults.Receive(1), faults.Cut()), faults.Play(faults.Receive(1), say("a", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b]" || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

// Time in which the application does something else is not the server's: streams that are read late don't make the target look slow, so that
// the next failure is retried.
func TestStreamCalls_ReadLate(t *testing.T) {
	for kind, desc := range kinds() {
		t.Run(kind, func(t *testing.T) {
			fresh(t, config(plain()), func(t *testing.T, s scene) {
				s.takes(t, nil, get, repeat(10*ms, 20)...)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				s.On(get, faults.Play(faults.Receive(1), say("a")))
				var streams []grpc.ClientStream
				for range 5 {
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					_ = stream.CloseSend()
					streams = append(streams, stream)
				}
				time.Sleep(5 * time.Second)
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
			[]testserver.Step{faults.Play(faults.Echo(0))},
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
		"success": {faults.Play(faults.Receive(1), say("a")), codes.OK},
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
		s.On(get, down().Times(2), faults.Play(faults.Receive(1), say("a"), faults.Pause(time.Second)).Then(testserver.Fail(codes.Aborted)))
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
			story = append(story, fmt.Sprintf("%d %s %s %v %v", c.Attempts, c.Code, c.Reason, c.Elapsed, c.Waited))
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
	fails := []testserver.Step{failing(), faults.Play(faults.Receive(2)).Then(down())} // not while it is sent to
	tooLarge := wrapperspb.String(string(make([]byte, 2000)))
	for name, rule := range map[string]struct {
		steps   []testserver.Step
		release func(s scene, stream grpc.ClientStream, cancel context.CancelFunc)
	}{
		"the connection is closed":        {hangs, func(s scene, _ grpc.ClientStream, _ context.CancelFunc) { _ = s.conn.Close() }},
		"its context is cancelled":        {hangs, func(_ scene, _ grpc.ClientStream, cancel context.CancelFunc) { cancel() }},
		"RecvMsg returns an error":        {fails, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = receive(stream) }},
		"RecvMsg returns its end":         {[]testserver.Step{failing(), faults.Play(faults.Receive(2))}, func(_ scene, stream grpc.ClientStream, _ context.CancelFunc) { _, _ = receive(stream) }},
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
		interceptor.WithObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.CallEnd) { untold.Done() }}))
	s.conn = s.Dial(t, s.retrier.DialOptions()...)
	s.On(get, faults.Play(faults.Echo(0)))
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
				s.On(get, testserver.Hang(), down(), testserver.Hang(), faults.Play(faults.Receive(1), say("a")).Trailer(metadata.Pairs("of", "4")))
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
		"success": {faults.Play(faults.Receive(1), say("a"), faults.Pause(501*ms)), codes.OK},
		"error":   {faults.Play(faults.Receive(1), say("a"), faults.Pause(501*ms)).Then(testserver.Fail(codes.Internal)), codes.Internal},
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
			"success": faults.Play(faults.Receive(1), say("a")), "failure": down(), "late failure": faults.Play(faults.Pause(ms)).Then(down()),
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				slow := interceptor.WithObserver(interceptor.Observer{
					Attempt: func(context.Context, interceptor.Event) { time.Sleep(ms) },
					CallEnd: func(context.Context, interceptor.CallEnd) { time.Sleep(ms) },
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
			"at once": failure, "after a message": faults.Play(faults.Receive(1), say("a"), faults.Pause(ms)).Then(failure),
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

// As in gRPC, the context of a stream that is over is done, also if its last attempt could not be opened.
func TestStreamEnd_ContextIsDone(t *testing.T) {
	play(t, impatient(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "a")
		synctest.Wait()
		s.Down()
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 1 || stream.Context().Err() == nil {
			t.Errorf("%v after %d attempts; its context: %v", err, s.Count(get), stream.Context().Err())
		}
	})
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
			CallEnd: func(ctx context.Context, _ interceptor.CallEnd) {
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

// The context ends while a goroutine of ours is inside of an attempt that an inner interceptor has received to its end: the messages that it
// holds are still the application's.
func TestStreamEnd_MessagesHeldBeyondTheContext(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			h := &hoarder{ClientStream: stream, messages: make(chan string, 10)}
			go h.hoard()
			return slowHeader{h}
		})
		s.On(get, faults.Play(faults.Receive(1), say("a", "b")))
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
		for first, before := range map[string]faults.Move{"message": say("a"), "headers": faults.SendHeader(nil)} {
			t.Run(name+", after "+first, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, faults.Play(faults.Receive(1), before, faults.Pause(time.Second)).Then(testserver.Fail(codes.NotFound)))
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

// An inner interceptor may open two streams with the options of one attempt, and return one of them. gRPC ends the other one when it is
// left, or with the attempt's context. The caller gets the trailer of the one that was returned.
func TestStreamOptions_TwoStreams(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"the other one is left": true, "the other one ends with the attempt": false} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, from("left", faults.Play(faults.Receive(1), say("x"))), from("taken", faults.Play(faults.Receive(1), say("a"))))
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
						open grpc.Streamer, opts ...grpc.CallOption,
					) (grpc.ClientStream, error) {
						leftCtx, leave := context.WithCancel(ctx)
						context.AfterFunc(ctx, leave)
						_, err := open(leftCtx, desc, cc, method, opts...)
						synctest.Wait()
						if leaves {
							defer leave()
						}
						if err != nil {
							return nil, err
						}
						return open(ctx, desc, cc, method, opts...)
					}))...)
				var trailer metadata.MD
				stream := testkit.Must(conn.NewStream(t.Context(), serverStream, get, grpc.Trailer(&trailer)))(t)
				synctest.Wait()
				testkit.NoError(t, stream.SendMsg(wrapperspb.String("x")))
				testkit.NoError(t, stream.CloseSend())
				testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
					t.Error(err)
				}
				synctest.Wait()
				if who := trailer["who"]; len(who) != 1 || who[0] != "taken" {
					t.Errorf("the trailer of %v", who)
				}
			})
		})
	}
}
