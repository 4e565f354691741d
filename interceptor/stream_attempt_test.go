// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// inside dials with an interceptor inside the Retrier's: it wraps the stream of the n-th attempt, from 1.
func (s scene) inside(t *testing.T, wrap func(n int, stream grpc.ClientStream) grpc.ClientStream) *grpc.ClientConn {
	t.Helper()
	n := 0
	return s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			n++
			return wrap(n, stream), nil
		}))...)
}

// spy is a stream that has something done before each message is sent.
type spy struct {
	grpc.ClientStream

	send func(m any)
}

func (s *spy) SendMsg(m any) error {
	s.send(m)
	return s.ClientStream.SendMsg(m)
}

func TestAnInterceptorInsideSeesTheApplicationsMessageOnTheFirstAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var seen []any
		conn := s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &spy{stream, func(m any) { seen = append(seen, m) }}
		})
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream, err := conn.NewStream(t.Context(), serverStream, get)
		if err != nil {
			t.Fatal(err)
		}
		m := wrapperspb.String("x")
		if err := stream.SendMsg(m); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || len(seen) != 1 || seen[0] != m {
			t.Errorf("%v, %v; seen %v", got, err, seen)
		}
	})
}

// An interceptor may change what is sent, in the message itself or by sending another one. What it
// changes in place of the first attempt is lost on those that follow, which send what the
// application sent.
func TestAMessageThatAnInterceptorPutsInPlaceIsTheOneSent(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return &signer{stream} })
		s.On(get, testserver.Play(testserver.EchoAll()))
		stream, err := conn.NewStream(t.Context(), bidiStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[x, signed]" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

type signer struct{ grpc.ClientStream }

func (s *signer) SendMsg(m any) error {
	text, ok := m.(*wrapperspb.StringValue)
	if !ok {
		return s.ClientStream.SendMsg(m)
	}
	return s.ClientStream.SendMsg(wrapperspb.String(text.GetValue() + ", signed"))
}

// The first attempt of a call can end while its message is on its way through slow interceptors.
func TestAReplayThatIsStuckInsideHarmsNeitherTheNextNorTheEnd(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n != 2 {
				return stream
			}
			return &spy{stream, func(any) { time.Sleep(10 * time.Second) }}
		})
		s.On(get,
			testserver.Play(testserver.Receive(2)).Then(down()),
			testserver.Play().Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream, err := conn.NewStream(t.Context(), clientStream, get)
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", 40<<10) // in gRPC's own buffers
		send(t, stream, long, long)
		_ = stream.CloseSend()
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "sum" {
			t.Errorf("%v, %v", m, err)
		}
		if got := s.heard(2); len(got) != 2 || got[0] != long || got[1] != long {
			t.Errorf("the third attempt heard %d messages", len(got))
		}
		time.Sleep(time.Minute)
		if s.retrier.Replayed() != 0 {
			t.Errorf("%d bytes are kept", s.retrier.Replayed())
		}
	})
}

// A stream can end in the moment between its opening and its first use.
func TestAStreamThatIsCancelledWhileItIsOpenedIsReleased(t *testing.T) {
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

func TestTheOptionsOfAStreamAreServedOnceByTheLastAttempt(t *testing.T) {
	marked := func(step testserver.Step, n string) testserver.Step {
		return step.Header(metadata.Pairs("from", n)).Trailer(metadata.Pairs("end", n))
	}
	for name, row := range map[string]struct {
		last testserver.Step
		want codes.Code
	}{
		"success": {testserver.Play(testserver.Receive(1), say("a")), codes.OK},
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

func TestTheOptionsOfAStreamThatCannotBeOpenedAreServedOnce(t *testing.T) {
	play(t, config(impatient()), func(t *testing.T, s scene) {
		s.Down()
		header, p := metadata.Pairs("stale", "x"), peer.Peer{}
		var finished []error
		stream, err := s.conn.NewStream(t.Context(), serverStream, get, grpc.Header(&header), grpc.Peer(&p),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		if stream != nil || len(finished) != 1 || finished[0] != err || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v, %v; OnFinish was told %v", stream, err, finished)
		}
		if header != nil || p.Addr != nil || len(s.attempts) != 4 {
			t.Errorf("header %v, peer %v, %d attempts", header, p, len(s.attempts))
		}
	})
}

func TestTheOptionsOfACancelledStreamAreServedOnceThoughNobodyReceives(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang().Header(metadata.Pairs("from", "1")))
		ctx, cancel := context.WithCancel(t.Context())
		var header metadata.MD
		var p peer.Peer
		var finished []error
		stream := s.open(t, ctx, bidiStream, grpc.Header(&header), grpc.Peer(&p),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		send(t, stream, "x")
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(finished) != 1 || status.Code(finished[0]) != codes.Canceled || fmt.Sprint(header["from"]) != "[1]" || p.Addr == nil {
			t.Errorf("OnFinish was told %v; header %v, peer %v", finished, header["from"], p.Addr)
		}
	})
}

func TestEventsTellTheWholeStoryOfAStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), testserver.Play(testserver.Receive(1), say("a"), testserver.Pause(time.Second)).Then(testserver.Fail(codes.Aborted)))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		_, err := receive(stream)
		var story []string
		for _, a := range s.attempts {
			story = append(story, fmt.Sprintf("%d %s %v", a.Number, a.Code, a.Elapsed))
		}
		for _, d := range s.decisions {
			story = append(story, fmt.Sprintf("%d %s %v", d.Attempt, d.Decision.Reason, d.Decision.Delay))
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

func TestAStreamPaysForItsExtraAttempts(t *testing.T) {
	ok := testserver.Play(testserver.Receive(1), say("a"))
	for name, row := range map[string]struct {
		script []testserver.Step
		want   string
	}{
		"success":                {[]testserver.Step{ok}, "asked [], failed 0, returned 0, refunded 0, ok 1, bad 0"},
		"after a failure":        {[]testserver.Step{down(), ok}, "asked [failure], failed 1, returned 0, refunded 1, ok 1, bad 0"},
		"after a timeout":        {[]testserver.Step{testserver.Hang(), ok}, "asked [timeout], failed 1, returned 0, refunded 1, ok 1, bad 0"},
		"answer in the backoff":  {[]testserver.Step{testserver.Play(testserver.Receive(1), testserver.Pause(1050*ms), say("a"))}, "asked [timeout], failed 0, returned 1, refunded 0, ok 1, bad 0"},
		"failure in the backoff": {[]testserver.Step{testserver.Fail(codes.NotFound).Delay(1050 * ms)}, "asked [timeout], failed 0, returned 1, refunded 0, ok 0, bad 1"},
	} {
		t.Run(name, func(t *testing.T) {
			retry := hasty()
			retry.Budget = ""
			p := &purse{Budget: budget.Unlimited, grants: 9}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, row.script...)
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				_, _ = receive(stream)
				if got := p.String(); got != row.want {
					t.Errorf("the budget: %s; want %s", got, row.want)
				}
			}, interceptor.WithBudget("", p))
		})
	}
}

// A stream that is answered may live for days, and its attempt is the only one from then on.
func TestAnAnsweredStreamHoldsNoPermitForAnotherAttempt(t *testing.T) {
	retry := hasty()
	retry.Budget = ""
	p := &purse{Budget: budget.Unlimited, grants: 9}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Pause(1050*ms), say("a"), testserver.Pause(time.Hour)))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		if p.returned != 1 {
			t.Errorf("the budget: %s; want the permit back", p)
		}
	}, interceptor.WithBudget("", p))
}
