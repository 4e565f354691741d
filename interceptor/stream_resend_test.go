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
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestStreamResend_Grows(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(1)).Then(down()),
			moves.Play(moves.Receive(2)).Then(down()),
			moves.Play(moves.Receive(3)).Then(down()),
			moves.Play(moves.Receive(0), say("a", "b", "c", "d")))
		stream := s.open(t, t.Context(), bidiStream)
		for _, text := range []string{"a", "b", "c", "d"} {
			send(t, stream, text)
			time.Sleep(time.Second)
		}
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b c d]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := fmt.Sprint(s.heardBy()); got != "[[a] [a b] [a b c] [a b c d].]" {
			t.Errorf("the attempts heard %s", got)
		}
		if s.waits() != "[1.1s 1.1s 1.2s]" { // each failure is found when the next message is sent
			t.Errorf("waits %s", s.waits())
		}
	})
}

func TestStreamResend_Close(t *testing.T) {
	closed := 0
	counting := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return &closeCounter{stream, &closed}, err
	}
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(counting))...)
		s.On(get,
			moves.Play(moves.Receive(0)).Then(down()),
			moves.Play(moves.Receive(1), moves.Pause(time.Second)).Then(down()), // fails once all is sent again
			moves.Play(moves.Receive(0), say("sum")))
		stream := must.Get(conn.NewStream(t.Context(), clientStream, get))(t)
		send(t, stream, "a", "b")
		_ = stream.CloseSend()
		must.Do(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		all := s.heardBy()
		if all[0] != "[a b]." || all[2] != "[a b]." || closed != 3 {
			t.Errorf("the attempts heard %s, with %d closes; want one for each of 3 attempts", all, closed)
		}
	})
}

func TestStreamResend_CloseBeside(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s = s.narrow(t)
		large := strings.Repeat("x", 40<<10)
		s.On(get,
			moves.Play(moves.Receive(5)).Then(down()),
			moves.Play(say(large, large, large, large, large), moves.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, large, large, large, large, large)
		time.Sleep(time.Second) // the first attempt has failed
		send(t, stream, "last")
		start := time.Now()
		if err := stream.CloseSend(); err != nil || time.Since(start) != 0 {
			t.Fatalf("CloseSend: %v after %v", err, time.Since(start))
		}
		if got, err := receive(stream); len(got) != 11 || err != io.EOF {
			t.Errorf("%d messages, %v; want 11", len(got), err)
		}
	})
}

func TestStreamResend_NarrowWindows(t *testing.T) {
	const n, size = 64, 16 << 10
	play(t, config(plain()), func(t *testing.T, s scene) {
		s = s.narrow(t)
		s.On(get, moves.Play(moves.Receive(n)).Then(down()), moves.Play(moves.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(2*n*size))
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for i := range n {
				if err := stream.SendMsg(wrapperspb.String(fmt.Sprint(i, strings.Repeat("x", size)))); err != nil {
					t.Errorf("SendMsg %d: %v", i, err)
				}
			}
			time.Sleep(time.Second) // the first attempt has failed
			_ = stream.CloseSend()
		})
		got, err := receive(stream)
		for i, text := range got {
			if !strings.HasPrefix(text, fmt.Sprint(i, "x")) {
				t.Fatalf("message %d is %.5s...", i, text)
			}
		}
		if len(got) != n || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%d messages, %v, in %d attempts; want %d in 2", len(got), err, s.Count(get), n)
		}
	})
}

// TestStreamResend_ReceiveBeside is for the race detector: in real time, two goroutines
// find out about the same failures.
func TestStreamResend_ReceiveBeside(t *testing.T) {
	t.Parallel()
	retry := plain()
	retry.Backoff = spec.Backoff{Initial: time.Microsecond, Max: time.Millisecond, Multiplier: 2}
	r := mustNew(t, mustSet(t, config(retry)), quiet)
	s := scene{Server: testserver.Start(t, testserver.Keep(4)), retrier: r}
	s.conn = s.Dial(t, r.DialOptions()...)
	failed, streams := 0, 75
	for i := range streams {
		n := 5 + i%20
		s.On(get,
			moves.Play(moves.Receive(1+i%n)).Then(down()),
			moves.Play().Then(down()),
			moves.Play(moves.Receive(1+i%3)).Then(down()),
			moves.Play(moves.Echo(0)))
		if !s.echoes(t, n) {
			failed++
		}
	}
	if failed > 0 || r.Replayed() != 0 {
		t.Errorf("%d streams of %d were not answered in full; %d bytes kept", failed, streams, r.Replayed())
	}
}

// A copy of a kept message can't always be made: protobuf encodes deeper messages than it decodes. Then the call ends with the last error of a
// server, with its trailer.
func TestStreamResend_TooDeep(t *testing.T) {
	deep := tooDeep()
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1)).Then(down().Trailer(metadata.Pairs("of", "the server"))))
		var finished []error
		stream := s.open(t, t.Context(), bidiStream, grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		must.Do(t, stream.SendMsg(deep))
		_, err := receive(stream)
		of := fmt.Sprint(stream.Trailer().Get("of"))
		if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonCommitted || of != "[the server]" || len(finished) != 1 || finished[0] != err {
			t.Errorf("%v (%s), trailer of %s; OnFinish was told %v", err, reasonOf(err), of, finished)
		}
	})
}

// tooDeep returns a message of which there can be no copy.
func tooDeep() *structpb.Value {
	deep := structpb.NewStringValue("")
	for range 6000 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	return deep
}

// No server has returned an error, or the message is the request for the rest of a stream: the call ends with the error of the copy.
func TestStreamResend_ErrorOfTheCopy(t *testing.T) {
	hang, cut := testserver.Hang(), moves.Play(moves.Receive(1), say("1")).Then(down())
	rest := interceptor.Resume(func(proto.Message) (proto.Message, bool) { return tooDeep(), true })
	for name, row := range map[string]struct {
		config  spec.Config
		desc    *grpc.StreamDesc
		request proto.Message
		script  testserver.Step
		opts    []grpc.CallOption
		want    string
	}{
		"the first attempt was too slow": {config(hasty()), bidiStream, tooDeep(), hang, nil, "[]"},
		"a stream that is resumed":       {config(plain()), serverStream, wrapperspb.String("all"), cut, []grpc.CallOption{rest}, "[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				knowLatency(s.retrier, s.conn)
				s.On(get, row.script)
				stream := s.open(t, t.Context(), row.desc, row.opts...)
				must.Do(t, stream.SendMsg(row.request))
				got, err := receive(stream)
				if fmt.Sprint(got) != row.want || !strings.Contains(fmt.Sprint(err), "recursion") {
					t.Errorf("%v, %v (%s)", got, err, reasonOf(err))
				}
			})
		})
	}
}

// A hedge can't get a copy of the request, and the first attempt, which has it, answers.
func TestStreamResend_NoCopyForTheHedge(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), moves.Pause(time.Second), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		synctest.Wait() // the first attempt is open, and takes the application's own message
		must.Do(t, stream.SendMsg(tooDeep()))
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v (%s)", got, err, reasonOf(err))
		}
		s.overOnce(t, codes.OK, 2)
	})
}
