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
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

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
		if err = cmp.Or(err, told); status.Code(err) != codes.ResourceExhausted || status.Code(told) != codes.ResourceExhausted || time.Since(start) != 0 {
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
	// as in gRPC, the call may be cancelled as RecvMsg returns what had arrived
	if told := <-finished; told != err && status.Code(told) != codes.Canceled || len(finished) > 0 {
		t.Errorf("RecvMsg: %v; OnFinish was told %v, and %d more", err, told, len(finished))
	}
}
