// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/stagger-go/stagger/internal/tools/inspect"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// What users may rely on in a stream that may have several attempts, and the tests that show it, all through gRPC:
//
//	rule                                                                       tests
//	1  one goroutine at a time sends to an attempt, one receives from it;      TestStreamRules_OneAtATime, TestStreamResend_Close
//	   CloseSend is sent once
//	2  each attempt is reported once, and released, also if OnFinish never     TestStreamRules_OneAtATime, TestStreamCalls_OptionsKept,
//	   comes                                                                   TestStreamAttempt_FirstIsReleased, …_ReleasedByGRPCsRules
//	3  the call is over once; whatever it holds is given back once             TestStreamRules_OneAtATime, TestStreamPanic_LeavesNothing
//	4  an attempt is sent a prefix of the application's messages, in order,    TestStreamRules_OneAtATime, TestStreamResend_Grows,
//	   and all of them before the close                                        TestStreamSend_InnerInterceptors
//	5  messages, headers, context and trailer are of one attempt; after        TestStreamRules_OneAttempt, TestStreamHedge_WinnersMetadata,
//	   io.EOF all of its messages                                              TestStreamRules_GivenUpIsNoSuccess
//	6  no call waits for what nobody will bring, nor for another call that     all: a bubble of synctest reports a deadlock;
//	   waits for the server                                                    TestStreamProgress_BesideRecvMsg, …_AnyOrder
//	7  when the call's context is over, every call returns                     TestStreamRules_EndsWithItsContext, TestStreamSend_Blocked
//	8  a call that is given up never looks like a success                      TestStreamRules_GivenUpIsNoSuccess
//	9  what was sent is not kept for longer than needed                        TestStreamCommit_LetsGo, TestForever_Memory
//	10 messages that arrived before the call's context ended are returned      TestStreamSingle_SlowReader, TestStreamEnd_MessagesHeldBeyondTheContext
//	R2 an end is reported by the call that is inside, else by OnFinish         TestStreamRules_ReportedByWhoIsInside,
//	                                                                           TestStreamCalls_HeaderThenCancel, TestStreamSingle_NoHeaders,
//	                                                                           TestStreamEnd_WithoutHeaders, TestStreamAttempt_ClosedAndForgotten
//	R3 the response is known, and OnFinish has run, before a call returns it;  TestStreamEnd_BeforeItIsReturned, TestStreamCalls_OnFinishAsks,
//	   SendMsg's io.EOF waits for neither                                      TestStreamEnd_OnFinishWaitsForTheSender
//	R4 the end has gRPC's trailer and peer                                     TestStreamCalls_CancelledHasPeer
//	R5 latency counts to the first message, whatever commits the call          TestStreamCalls_AnswerTime, and in package admission:
//	                                                                           TestAdmission_CommitIsNoMessage
//	R6 no message is made of another type than the application's               TestMessageForeign_…, TestMessage
//	R7 nobody receives before the application does                             TestStreamRules_NobodyReceivesAhead
//	R8 an attempt is slow only while the application waits for it              TestStreamRules_SlowMeansWaitedFor, TestStreamTimeout_NobodyReceives,
//	                                                                           TestStreamTimeout_BlockedSend, and in package admission:
//	                                                                           TestAdmission_SlowReader
//
// (R1 is rule 1.)

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
	answer := moves.Play(moves.Receive(0), say("sum"))
	if desc.ServerStreams {
		answer = moves.Play(moves.Receive(1), moves.SendHeader(nil), moves.Pause(2*ms), say("a", "b"), moves.Receive(0), say("c"))
	}
	s.On(get,
		moves.Play(moves.Receive(1+round%3)).Then(down().Delay(time.Duration(round)*ms)),
		down().Delay(time.Duration(round%4)*ms),
		moves.Play(moves.Receive(1), moves.Pause(ms)).Then(down()),
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
		closed := inspect.HalfClosed(a)
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

// While a call of the application is inside, it alone reports the end of the attempt, however long it takes: not OnFinish, which has
// come before it, and not the second that the application had to find the end.
func TestStreamRules_ReportedByWhoIsInside(t *testing.T) {
	for _, begins := range []time.Duration{0, 500 * ms, 3 * time.Second} {
		t.Run(begins.String(), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					h := &hoarder{ClientStream: stream, messages: make(chan string, 10)}
					go h.hoard() // so that OnFinish comes early
					return slowReceiver{h}
				})
				s.On(get, down(), moves.Play(moves.Receive(1), say("a")))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				time.Sleep(begins)
				got, err := receive(stream)
				synctest.Wait()
				var codes []string
				for _, a := range s.attempts {
					codes = append(codes, fmt.Sprint(a.Attempt, a.Code))
				}
				if fmt.Sprint(got) != "[a]" || err != io.EOF || fmt.Sprint(codes) != "[1 Unavailable 2 OK]" || s.Count(get) != 2 {
					t.Errorf("%v, %v; attempts %v, %d at the server", got, err, codes, s.Count(get))
				}
			})
		})
	}
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
						return moves.Play(moves.Receive(1), moves.SendHeader(md), moves.Pause(ms), say(who)).Trailer(md)
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
							answer, want := moves.Play(moves.Receive(1), moves.Pause(ms), say("a")), "[a]"
							if desc.ServerStreams {
								answer, want = moves.Play(moves.Receive(1), moves.Pause(ms), say("a"), moves.Pause(ms), say("b"), moves.Pause(ms)), "[a b]"
							}
							s.On(get, moves.Play(moves.Receive(1), moves.Pause(ms)).Then(down()), answer)
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
							// Cancelled before io.EOF: as in gRPC, OnFinish is told so, and RecvMsg still returns what had arrived.
							late := ended == codes.OK && status.Code(finished[0]) == codes.Canceled
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
					s.On(get, moves.Play(moves.Receive(1), say("a"), moves.Pause(time.Hour)))
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

// A stream of one request, whose attempts may run in parallel, is retried though the application does not wait yet.
func TestStreamRules_RetriedUnwatched(t *testing.T) {
	for name, c := range retriedPolicies() {
		if name == "retried" || name == "replaced when slow" {
			continue // the application's next call finds the failure
		}
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, down(), down(), moves.Play(moves.Receive(1), say("a")))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				time.Sleep(10 * time.Second)
				if s.Count(get) != 3 {
					t.Errorf("%d attempts were sent before the application waits; want 3", s.Count(get))
				}
				if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF || s.Count(get) != 3 {
					t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
				}
			})
		})
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
					s.On(get, testserver.Hang(), testserver.Hang(), moves.Play(moves.Receive(1), say("a")))
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

// Before RecvMsg makes attempts, a goroutine may have received its message: RecvMsg then receives no other one.
func TestStreamRules_ReceivedMeanwhile(t *testing.T) {
	for name, c := range retriedPolicies() {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(1), moves.Pause(time.Second), say("a", "b")))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				synctest.Wait()
				goOn := interceptor.BeginReceive(stream, new(wrapperspb.StringValue))
				time.Sleep(2 * time.Second)
				_ = goOn()
				if got, err := receive(stream); fmt.Sprint(got) != "[b]" || err != io.EOF {
					t.Errorf("after the first message: %v, %v", got, err)
				}
			})
		})
	}
}

// The time in which the application does something else is not the server's, also if a goroutine of ours receives the first message before
// RecvMsg makes attempts: servers that respond in time are not taken for slow ones, and a retry follows.
func TestStreamRules_IdleBeforeReceivedMeanwhile(t *testing.T) {
	p := plain()
	p.PerAttemptTimeout = time.Second
	fresh(t, config(p), func(t *testing.T, s scene) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s.On(get, moves.Play(moves.Receive(1), moves.Pause(5*time.Second+100*ms), say("a")))
		var streams []grpc.ClientStream
		for range 10 {
			stream := s.open(t, ctx, serverStream)
			send(t, stream, "x")
			streams = append(streams, stream)
		}
		time.Sleep(5 * time.Second)
		var goOn []func() error
		for _, stream := range streams {
			goOn = append(goOn, interceptor.BeginReceive(stream, new(wrapperspb.StringValue)))
		}
		time.Sleep(200 * ms) // the message comes
		for i, stream := range streams {
			_ = goOn[i]()
			if got, err := receive(stream); got != nil || err != io.EOF {
				t.Error(got, err)
			}
		}
		s.On(get, down(), text("b"))
		if got, err := s.call(ctx, get); got != "b" || err != nil {
			t.Errorf("%s, %v (%s)", got, err, reasonOf(err))
		}
	})
}

// What RecvMsg is about to go on with is left to RecvMsg, also when the application's second to find a failure is over.
func TestStreamRules_EndedMeanwhile(t *testing.T) {
	for name, c := range retriedPolicies() {
		t.Run(name, func(t *testing.T) {
			classifying := func(context.Context, string, any, error) interceptor.Verdict {
				time.Sleep(time.Second)
				return interceptor.VerdictByCode
			}
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, down(), text("a"))
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					h := &hoarder{ClientStream: stream, messages: make(chan string, 10)}
					go h.hoard()
					return h
				})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				stream := s.open(t, ctx, serverStream)
				send(t, stream, "x")
				time.Sleep(500 * ms)
				m := new(wrapperspb.StringValue)
				goOn := interceptor.BeginReceive(stream, m)
				time.Sleep(time.Second)
				if err := goOn(); m.GetValue() != "a" || err != nil {
					t.Errorf("%q, %v", m.GetValue(), err)
				}
			}, interceptor.WithClassifier(classifying))
		})
	}
}

// Who needs an open attempt, as SendMsg and Context do, does not wait for a goroutine of ours that has opened it meanwhile and asks for its
// headers: the server may wait for the message.
func TestStreamRules_OpenedMeanwhile(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), say("a")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stream := s.open(t, ctx, serverStream)
		synctest.Wait()
		interceptor.AwaitOpened(stream)
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Error(got, err)
		}
	})
}
