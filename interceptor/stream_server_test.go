// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"cmp"
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
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestStreamHeader_ThroughAllAttempts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		start := time.Now()
		md, err := stream.Header()
		if md != nil || err != nil || s.Count(get) != 4 || time.Since(start) != 700*ms {
			t.Errorf("%v, %v after %d attempts and %v; want no headers after 4 and 700 ms", md, err, s.Count(get), time.Since(start))
		}
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	})
}

func TestStreamHeader_Hedged(t *testing.T) {
	brings := func(after time.Duration, name string) testserver.Step {
		return faults.Play(faults.Pause(after), faults.SendHeader(metadata.Pairs("who", name)),
			faults.Pause(time.Second), say(name))
	}
	for name, row := range map[string]struct {
		ask           time.Duration // when the header is asked for
		first, second testserver.Step
		want, sent    string
	}{
		"that are not there yet":     {0, testserver.Hang(), brings(50*ms, "2"), "[2]", "[0s 100ms]"},
		"of the only attempt":        {0, brings(50*ms, "1"), brings(0, "2"), "[1]", "[0s]"},
		"nobody waits for the first": {90 * ms, brings(150*ms, "1"), brings(0, "2"), "[1]", "[0s]"},
		"after a failure":            {0, down().Delay(20 * ms), brings(50*ms, "2"), "[2]", "[0s 20ms]"},
		"and the first comes first":  {0, brings(120*ms, "1"), brings(50*ms, "2"), "[1]", "[0s 100ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(func(h *spec.Hedge) { h.MaxAttempts = 2 }), func(t *testing.T, s scene) {
				s.On(get, row.first, row.second)
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				time.Sleep(row.ask)
				md, err := stream.Header()
				if fmt.Sprint(md["who"]) != row.want || err != nil {
					t.Fatalf("headers %v, %v", md, err)
				}
				time.Sleep(100 * ms) // no other attempt is sent
				got, err := receive(stream)
				if fmt.Sprint(got) != row.want || err != io.EOF || s.sent() != row.sent {
					t.Errorf("%v, %v, sent %s", got, err, s.sent())
				}
			})
		})
	}
}

// hastyHeader has no headers, and does not say why: gRPC's Header does so if the response has come, and its status has not.
type hastyHeader struct{ grpc.ClientStream }

func (h hastyHeader) Header() (md metadata.MD, err error) {
	_, _ = h.ClientStream.Header()
	return md, err
}

// A call that asks for headers before anything else is retried after attempts that end without, whatever Header knows of
// their ends.
func TestStreamHeader_StatusUnknown(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(attempt int, stream grpc.ClientStream) grpc.ClientStream {
			if attempt%3 == 0 {
				return stream
			}
			return hastyHeader{stream}
		})
		for name, ask := range map[string]func(grpc.ClientStream){
			"Header": func(stream grpc.ClientStream) {
				if md, err := stream.Header(); md == nil || err != nil {
					t.Errorf("Header: %v, %v", md, err)
				}
			},
			"RecvMsg": func(grpc.ClientStream) {},
		} {
			s.Reset()
			s.On(get, down(), down(), text("a"))
			stream := s.open(t, t.Context(), serverStream)
			send(t, stream, "x")
			ask(stream)
			if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF || s.Count(get) != 3 {
				t.Errorf("%s: %v, %v after %d attempts; want [a] after 3", name, got, err, s.Count(get))
			}
		}
	})
}

// lateHeader has something done between the headers of an attempt and their delivery.
type lateHeader struct {
	grpc.ClientStream

	then func()
}

func (l *lateHeader) Header() (metadata.MD, error) {
	md, err := l.ClientStream.Header()
	l.then()
	return md, err
}

// A call is cancelled while its headers are on their way to us and its message lies with gRPC. Once RecvMsg has returned
// the end, that message counts for no call. Many calls, since RecvMsg may also get it before.
func TestStreamHeader_MessageLeftAtTheEnd(t *testing.T) {
	play(t, hedged(func(h *spec.Hedge) { h.HedgingDelay = time.Hour }), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			return &lateHeader{stream, func() { time.Sleep(300 * ms) }}
		})
		s.On(get, faults.Play(faults.Receive(1), say("a"), faults.Pause(time.Hour)))
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			stream := s.open(t, ctx, bidiStream)
			send(t, stream, "x")
			stream.Context()
			time.AfterFunc(200*ms, cancel)
			got, err := receive(stream)
			if again := stream.RecvMsg(new(wrapperspb.StringValue)); len(got) > 1 || status.Code(err) != codes.Canceled || again != err {
				t.Fatalf("%v, %v, then %v", got, err, again)
			}
		}
	})
}

// Header beside a RecvMsg returns as soon as there are headers, as in gRPC, though no message has come.
func TestStreamHeader_BesideReceiverAndContext(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), faults.SendHeader(metadata.Pairs("who", "1")), faults.Pause(10*time.Second), say("a")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		start := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() { _ = stream.RecvMsg(new(wrapperspb.StringValue)) })
		calls.Go(func() { time.Sleep(time.Second); stream.Context() })
		time.Sleep(ms)
		md, err := stream.Header()
		if fmt.Sprint(md["who"], err) != "[1] <nil>" || time.Since(start) > 2*ms {
			t.Errorf("%v, %v after %v", md, err, time.Since(start))
		}
		calls.Wait()
		_, _ = receive(stream)
	})
}

// Header waits beside a SendMsg that finds out how an attempt has ended. When that returns, Header makes the next attempt.
func TestStreamHeader_BesideSender(t *testing.T) {
	slowObserver := interceptor.WithObserver(interceptor.Observer{Attempt: func(context.Context, interceptor.Event) { time.Sleep(time.Second) }})
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1)).Then(testserver.Fail(codes.Unavailable)), faults.Play(faults.SendHeader(metadata.Pairs("who", "2"))).Then(testserver.Hang()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream := s.open(t, ctx, bidiStream)
		send(t, stream, "x")
		synctest.Wait()
		start := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() { send(t, stream, "y") })
		time.Sleep(ms)
		md, err := stream.Header()
		if took := time.Since(start); fmt.Sprint(md["who"], err) != "[2] <nil>" || took != time.Second {
			t.Errorf("Header returns %v, %v after %v", md, err, took)
		}
		calls.Wait()
		cancel()
		time.Sleep(10 * time.Second) // the observer is told of the end
	}, slowObserver)
}

// takes is an attempt that receives all messages, and answers after a while.
func takes(after time.Duration, answer string) testserver.Step {
	return faults.Play(faults.Receive(0), faults.Pause(after), say(answer))
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

// The first attempt gets headers, which the application has not requested, and loses.
func TestStreamHedge_WinnersMetadata(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		who := func(name string) faults.Move { return faults.SendHeader(metadata.Pairs("who", name)) }
		s.On(get, faults.Play(who("first"), faults.Pause(time.Hour)).Trailer(metadata.Pairs("who", "first")),
			faults.Play(who("second"), faults.Receive(1), say("second")).Trailer(metadata.Pairs("who", "second")))
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

// An attempt whose message is still inside an interceptor when another one wins has ended as a cancelled one.
func TestStreamHedge_LoserHasItsMessage(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return slowReceiver{stream}
			}
			return stream
		})
		s.On(get, text("first").Delay(120*ms), text("second").Delay(50*ms))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		got, err := receive(stream)
		synctest.Wait()
		if fmt.Sprint(got) != "[second]" || err != io.EOF || len(s.attempts) != 2 || s.attempts[0].Attempt != 1 || s.attempts[0].Code != codes.Canceled {
			t.Errorf("%v, %v; attempts %+v", got, err, s.attempts)
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

func TestStreamHedge_TooLarge(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), serverStream, grpc.MaxCallSendMsgSize(10))
		start := time.Now()
		err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", 100)))
		_, told := receive(stream) // the goroutine that receives may be faster: then SendMsg returns nil
		err = cmp.Or(err, told)
		if status.Code(err) != codes.ResourceExhausted || status.Code(told) != codes.ResourceExhausted || time.Since(start) != 0 {
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

// These race conditions happen by chance, in many concurrent streams.
func TestStreamHedge_Moments(t *testing.T) {
	for name, row := range map[string]struct {
		desc  *grpc.StreamDesc
		first testserver.Step
		act   func(stream grpc.ClientStream, cancel context.CancelFunc) // as the attempt ends
	}{
		"context as an attempt fails": {serverStream, down().Delay(5 * ms), func(s grpc.ClientStream, _ context.CancelFunc) { s.Context() }},
		"trailer as an attempt fails": {serverStream, down().Delay(5 * ms), func(s grpc.ClientStream, _ context.CancelFunc) { s.Trailer() }},
		"headers as the call is cancelled": {serverStream, faults.Play(faults.Pause(5*ms), faults.SendHeader(nil), faults.Pause(time.Hour)), func(s grpc.ClientStream, cancel context.CancelFunc) {
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
	// as in gRPC, the call may be cancelled as RecvMsg returns what had arrived
	if told := <-finished; told != err && status.Code(told) != codes.Canceled || len(finished) > 0 {
		t.Errorf("RecvMsg: %v; OnFinish was told %v, and %d more", err, told, len(finished))
	}
}
