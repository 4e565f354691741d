// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
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
		if s.waits() != "[1.1s 1.2s 1.4s]" { // each failure is found when the next message is sent, which waits for the backoff
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

// tooDeep returns a message of which there can be no copy.
func tooDeep() *structpb.Value {
	deep := structpb.NewStringValue("")
	for range 6000 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	return deep
}
