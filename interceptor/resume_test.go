// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestResume_Hedged(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(faults.Receive(1), say("1", "2")).Then(down()),
			testserver.Hang(),
			faults.Play(faults.Receive(1), say("3", "4")))
		next := func(last proto.Message) (proto.Message, bool) {
			m, ok := last.(*wrapperspb.StringValue)
			return wrapperspb.String("after " + m.GetValue()), ok
		}
		got, _, err := s.whole(t, serverStream, interceptor.Resume(next))
		if got != "[1 2 3 4]" || err != io.EOF || s.sent() != "[0s 0s 100ms]" {
			t.Errorf("%s, %v, sent %s", got, err, s.sent())
		}
		if heard := fmt.Sprint(s.heardBy()); heard != "[[x] [after 2] [after 2]]" {
			t.Errorf("the attempts heard %s", heard)
		}
		s.overOnce(t, codes.OK, 3)
	})
}

// A function that returns no request, as a pointer that is nil, ends the stream: an empty request would begin it again.
func TestResume_NoRequest(t *testing.T) {
	for name, next := range map[string]proto.Message{
		"nil": nil, "a nil pointer": (*wrapperspb.StringValue)(nil), "a pointer to nothing": (*nothing)(nil),
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1), say("1", "2")).Then(down()), faults.Play(faults.Receive(1), say("1")))
				got, _, err := s.whole(t, serverStream, interceptor.Resume(func(proto.Message) (proto.Message, bool) { return next, true }))
				if got != "[1 2]" || status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonCommitted || s.Count(get) != 1 {
					t.Errorf("%s, %v (%s) after %d attempts; want the server's error", got, err, reasonOf(err), s.Count(get))
				}
			})
		})
	}
}

// nothing is a message of the application's, with methods of one that it does not have.
type nothing struct{ *wrapperspb.StringValue }

// after asks for what comes after the last message.
func after(last proto.Message) (proto.Message, bool) {
	n, err := strconv.Atoi(last.(*wrapperspb.StringValue).GetValue())
	return wrapperspb.String("after " + strconv.Itoa(n)), err == nil
}

func TestResume(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(faults.Receive(1), say("1", "2")).Then(down()),
			down(), // and the next attempt does not get anywhere
			faults.Play(faults.Receive(1), say("3"), faults.Cut()),
			faults.Play(faults.Receive(1), say("4")))
		time.AfterFunc(time.Second, s.conn.ResetConnectBackoff)
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1 2 3 4]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		var asked []string
		for i := range s.Attempts() {
			asked = append(asked, s.heard(i)...)
		}
		if fmt.Sprint(asked) != "[from the start after 2 after 2 after 3]" {
			t.Errorf("the server was asked %q", asked)
		}
		if c := s.calls[0]; c.Attempts != 4 || c.Reason != policy.ReasonSucceeded {
			t.Errorf("call %+v", c)
		}
	})
}

// So is the message of an attempt that the call was committed to before, since the application asked for headers.
func TestResume_BoundAfterHeaders(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), down(), faults.Play(faults.Receive(1), say("1")).Then(down()), down())
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		testkit.Must(stream.Header())(t)
		got, err := receive(stream)
		if fmt.Sprint(got) != "[1]" || reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 6 {
			t.Errorf("%v, %s after %d attempts; want three after the one that brought a message", got, reasonOf(err), s.Count(get))
		}
	})
}

// Before its first message, a stream is resumed with its own request, also if the application has seen headers.
func TestResume_BeforeTheFirstMessage(t *testing.T) {
	for name, look := range map[string]func(grpc.ClientStream){
		"nothing": func(grpc.ClientStream) {},
		"Header":  func(s grpc.ClientStream) { _, _ = s.Header() },
		"Context": func(s grpc.ClientStream) { s.Context() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Pause(time.Minute)).Then(down()).Times(9), feed(1, 0))
				stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
				send(t, stream, "from the start")
				look(stream)
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil || fmt.Sprint(s.heard(9)) != "[from the start]" {
					t.Errorf("%v (%s) after %d attempts", err, reasonOf(err), s.Count(get))
				}
				if got, err := receive(stream); err != io.EOF || len(got) > 0 {
					t.Errorf("then %v, %v", got, err)
				}
			})
		})
	}
}

// After the first message, nothing is kept of the request that a stream committed by its headers has kept until then.
func TestResume_ReleasesItsRequest(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), faults.SendHeader(nil), say("1"), faults.Pause(time.Minute)))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_, _ = stream.Header()
		before := s.retrier.Replayed()
		testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		if n := s.retrier.Replayed(); before == 0 || n != 0 {
			t.Errorf("%d bytes are kept before the first message, and %d after it", before, n)
		}
		_, _ = receive(stream)
	})
}

func TestResume_Copy(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(faults.Receive(1), say("7")).Then(down()),
			faults.Play(faults.Receive(1), say("8")))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		m := new(wrapperspb.StringValue)
		testkit.NoError(t, stream.RecvMsg(m))
		m.Value = "the application's now"
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "8" {
			t.Errorf("%v, %v", m, err)
		}
		if got := fmt.Sprint(s.heard(1)); got != "[after 7]" {
			t.Errorf("the server was asked %s", got)
		}
	})
}

func TestResume_OneReply(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("1"))
		stream := s.open(t, t.Context(), &grpc.StreamDesc{}, interceptor.Resume(after))
		stream.Context()
		send(t, stream, "x")
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil || len(s.calls) != 1 {
			t.Errorf("%v, told of %d ends; want one", err, len(s.calls))
		}
	})
}

// These hold what docs/streams.md says of streams that live forever; TestResume and TestKeepalive hold the rest.

// feed is an attempt of a watch: after a pause it brings some messages, and then it ends, with an error if there is one.
func feed(some int, pause time.Duration, end ...testserver.Step) testserver.Step {
	texts := make([]string, some)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	step := faults.Play(faults.Receive(1), faults.Pause(pause), say(texts...))
	if len(end) > 0 {
		step = step.Then(end[0])
	}
	return step
}

// watch is the application's side of a watch that is resumed: it opens one, and receives until it ends.
func (s scene) watch(ctx context.Context, t *testing.T, opts ...grpc.CallOption) (got []string, err error) {
	t.Helper()
	stream := s.open(t, ctx, serverStream, append([]grpc.CallOption{interceptor.Resume(after)}, opts...)...)
	send(t, stream, "from the start")
	_ = stream.CloseSend()
	return receive(stream)
}

// The ends of a resumed stream, and when a loop may open another.
func TestForever_Ends(t *testing.T) {
	cut := feed(1, 0, down()).Times(1)
	next := func(steps ...testserver.Step) func(*testing.T, scene) {
		return func(_ *testing.T, s scene) { s.On(get, append([]testserver.Step{cut}, steps...)...) }
	}
	for name, row := range map[string]struct {
		prepare func(*testing.T, scene)
		change  func(*spec.Policy)
		opts    []grpc.CallOption
		reason  policy.Reason // "": io.EOF
	}{
		"the server ends it":                   {prepare: next(feed(1, 0))},
		"a code that is not listed":            {prepare: next(testserver.Fail(codes.OutOfRange, "too old")), reason: policy.ReasonNonRetryable},
		"four attempts without a message":      {prepare: next(down()), reason: policy.ReasonAttemptsExhausted},
		"the server forbids it":                {prepare: next(down().Pushback("-1")), reason: policy.ReasonPushbackStop},
		"the function of Resume declines":      {prepare: next(), opts: []grpc.CallOption{interceptor.Resume(func(proto.Message) (proto.Message, bool) { return nil, false })}, reason: policy.ReasonCommitted},
		"no Resume":                            {prepare: next(), opts: []grpc.CallOption{interceptor.Resume(nil)}, reason: policy.ReasonCommitted},
		"the policy's timeout, progress or no": {prepare: func(_ *testing.T, s scene) { s.On(get, feed(1, 3*time.Second, down())) }, change: func(s *spec.Policy) { s.Timeout = 10 * time.Second }, reason: policy.ReasonDeadlineExceeded},
		"the budget":                           {prepare: next(), change: func(s *spec.Policy) { s.Retry.Budget = "broke" }, reason: policy.ReasonBudgetExhausted},
		"an outage, in which other calls fail as well": {prepare: func(t *testing.T, s scene) {
			t.Helper()
			s.On(get, faults.Play(faults.Receive(1), say("0"), faults.Pause(2*time.Second)).Then(down()))
			time.AfterFunc(time.Second, func() { s.allFail(t) })
			for i := range 50 {
				time.AfterFunc(time.Second+time.Duration(i)*100*ms, func() { _, _ = s.call(t.Context(), get, interceptor.MaxAttempts(1)) })
			}
		}, change: func(s *spec.Policy) { s.Retry.Budget = "" }, reason: policy.ReasonFailingEverywhere},
		"no connection": {prepare: func(_ *testing.T, s scene) {
			s.On(get, faults.Play(faults.Receive(1), say("0"), faults.Pause(time.Second), faults.Cut()))
			time.AfterFunc(500*ms, s.Down)
		}, reason: policy.ReasonNotConnected},
		"Retrier.Close": {prepare: func(_ *testing.T, s scene) {
			s.On(get, feed(1, time.Second, down()))
			time.AfterFunc(1050*ms, s.retrier.Close)
		}, reason: policy.ReasonClosed},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(plain())
			if row.change != nil {
				row.change(&c.Methods[0].Policy)
			}
			c.Budgets = []spec.Budget{{Name: "broke", Config: budget.BucketConfig{SlowCost: 1}}}
			play(t, c, func(t *testing.T, s scene) {
				row.prepare(t, s)
				_, err := s.watch(t.Context(), t, row.opts...)
				if row.reason == "" && err == io.EOF {
					return
				}
				if reasonOf(err) != row.reason {
					t.Errorf("%v (%s); want %s", err, reasonOf(err), row.reason)
				}
			})
		})
	}
}

// After its first message, a stream keeps no sent messages for replay, and of the received ones only a copy of the last.
func TestForever_Memory(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, feed(1000, 0, down()).Times(3), text("the end"))
		var copies []weak.Pointer[wrapperspb.StringValue]
		next := func(last proto.Message) (proto.Message, bool) {
			m, ok := last.(*wrapperspb.StringValue)
			copies = append(copies, weak.Make(m))
			return wrapperspb.String("after " + m.GetValue()), ok
		}
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(next))
		send(t, stream, strings.Repeat("x", 1<<10))
		kept := s.retrier.Replayed()
		_ = stream.CloseSend()
		var most int64
		for range 3001 {
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the first message may come before all is sent again
			most = max(most, s.retrier.Replayed())
		}
		if kept < 1<<10 || most != 0 {
			t.Errorf("%d bytes are kept before the first message, %d after it; want 1024 and some, and none", kept, most)
		}
		runtime.GC()
		alive := slices.DeleteFunc(copies, func(p weak.Pointer[wrapperspb.StringValue]) bool { return p.Value() == nil })
		if len(copies) != 3 || len(alive) > 0 {
			t.Errorf("%d of %d copies are kept; want none of 3: the last message is another one", len(alive), len(copies))
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
			t.Error(err)
		}
	})
}

// TestResume_AnHourOfCuts has a server that brings one message of every stream and cuts it then, and an application that
// opens another stream a second after one has ended. Progress starts the attempts anew each time, so that only the backoff
// and the budget bound the requests.
func TestResume_AnHourOfCuts(t *testing.T) {
	testkit.Long(t)
	unspread := func(first, longest time.Duration) backoff.Config {
		return backoff.Config{Initial: first, Max: longest, Multiplier: 2, Jitter: "NONE"}
	}
	d := budget.Default()
	for name, row := range map[string]struct {
		config func() spec.Config
		most   func(streams int) int // requests
		least  int
		ends   policy.Reason // of streams, but for those of the last seconds
	}{
		// 1, 7 more until the backoff is 10 s, and one each 10 s: streams that are cut at once do not reset it. In the last
		// 10 s no backoff fits, and others begin anew.
		"no budget: the backoff grows": {func() spec.Config {
			retry := plain()
			retry.Backoff = unspread(100*ms, 10*time.Second)
			return config(retry)
		}, func(int) int { return 366 + 15 }, 366, ""},
		// The default budget: its size at first, and as much every refill time.
		"the budget": {func() spec.Config {
			retry := plain()
			retry.Backoff, retry.Budget = unspread(10*ms, 10*ms), ""
			return config(retry)
		}, func(streams int) int { return streams + int(d.Size+d.Size*float64(time.Hour/budget.RefillTime)) }, 3600 + int(d.Size)*11, policy.ReasonBudgetExhausted},
		// A hedging policy has no backoff of its own: 50 ms at first, up to 2 s, half of that here.
		"hedging without a budget: a backoff all the same": {func() spec.Config { return hedged() }, func(int) int { return 3600 + 10 }, 3590, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On("*", faults.Play(faults.Receive(1), say("1")).Then(down()))
				r := mustNew(t, mustSet(t, row.config()), quiet, interceptor.WithRandom(func() float64 { return 0.5 }))
				conn := server.Dial(t, r.DialOptions()...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				streams := 0
				for ctx.Err() == nil {
					streams++
					stream, err := conn.NewStream(ctx, serverStream, get, interceptor.Resume(after))
					if err != nil {
						t.Fatal(err)
					}
					_ = stream.SendMsg(wrapperspb.String("from the start"))
					_ = stream.CloseSend()
					_, err = receive(stream)
					if time.Until(deadlineOf(ctx)) > 10*time.Second && reasonOf(err) != row.ends {
						t.Fatalf("%v (%s); want %q", err, reasonOf(err), row.ends)
					}
					time.Sleep(time.Second)
				}
				requests := server.Count(get)
				t.Logf("%d requests for %d streams", requests, streams)
				if most := row.most(streams); requests < row.least || requests > most {
					t.Errorf("%d requests for %d streams; want %d to %d", requests, streams, row.least, most)
				}
			})
		})
	}
}

func deadlineOf(ctx context.Context) time.Time {
	deadline, _ := ctx.Deadline()
	return deadline
}

// A stream that breaks every minute for an hour is resumed each time, from its last message, and leaves nothing behind.
func TestResume_AnHour(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		const each, breaks = 60, 60 // messages, a second apart
		n := 0                      // the next message
		s.On(get, testserver.Stream(func(stream grpc.ServerStream) error {
			request := new(wrapperspb.StringValue)
			if err := stream.RecvMsg(request); err != nil {
				return err
			}
			if want := fmt.Sprint("after ", n-1); n > 0 && request.GetValue() != want {
				return status.Errorf(codes.Internal, "asked for %q; want %q", request.GetValue(), want)
			}
			for range each {
				time.Sleep(time.Second)
				if err := stream.SendMsg(wrapperspb.String(strconv.Itoa(n))); err != nil {
					return err
				}
				n++
			}
			if n == each*breaks {
				return nil
			}
			return status.Error(codes.Unavailable, "down")
		}))
		began := time.Now()
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		m := new(wrapperspb.StringValue)
		for i := range each * breaks {
			if err := stream.RecvMsg(m); err != nil || m.GetValue() != strconv.Itoa(i) {
				t.Fatalf("message %d after %v: %s, %v", i, time.Since(began), m.GetValue(), err)
			}
		}
		if n := s.retrier.Replayed(); n > 1<<10 {
			t.Errorf("%d bytes for replay; want those of one request", n)
		}
		if err := stream.RecvMsg(m); err != io.EOF || s.Count(get) != breaks || time.Since(began) < time.Hour {
			t.Errorf("%v after %v and %d attempts; want EOF after an hour and %d", err, time.Since(began), s.Count(get), breaks)
		}
	})
}

// The function of Resume runs in RecvMsg alone: not when the end of the context finds an attempt that an inner interceptor has received to its
// end. Nothing could follow anyway.
func TestResume_NotBeyondTheContext(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
			h := &hoarder{ClientStream: stream, messages: make(chan string, 10)}
			go h.hoard()
			return h
		})
		s.On(get, feed(2, 0, down()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked := 0
		stream := s.open(t, ctx, serverStream, interceptor.Resume(func(proto.Message) (proto.Message, bool) { asked++; return nil, false }))
		send(t, stream, "from the start")
		_ = stream.CloseSend()
		testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		synctest.Wait() // the interceptor has the end
		cancel()
		time.Sleep(time.Second)
		if asked != 0 {
			t.Errorf("the rest was asked for %d times", asked)
		}
		if got, err := receive(stream); fmt.Sprint(got) != "[1]" || status.Code(err) != codes.Unavailable {
			t.Errorf("the rest is %v, %v", got, err)
		}
	})
}
