// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// narrow gives the scene a server and a connection whose windows are the smallest that gRPC allows.
func (s scene) narrow(t *testing.T) scene {
	t.Helper()
	const window = 64<<10 - 1
	s.Server = testserver.Start(t, testserver.ServerOptions(grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window)))
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))...)
	return s
}

func TestCloseSendDoesNotWaitForAReplayThatWaitsForTheReceiver(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s = s.narrow(t)
		large := strings.Repeat("x", 40<<10)
		s.On(get,
			testserver.Play(testserver.Receive(5)).Then(down()),
			testserver.Play(say(large, large, large, large, large), testserver.EchoAll()))
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

func TestAMebibyteIsReplayedThroughNarrowWindowsToAnEcho(t *testing.T) {
	const n, size = 64, 16 << 10
	play(t, config(plain()), func(t *testing.T, s scene) {
		s = s.narrow(t)
		s.On(get, testserver.Play(testserver.Receive(n)).Then(down()), testserver.Play(testserver.EchoAll()))
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

// TestSenderAndReceiverMayRetryAtTheSameTime is for the race detector: in real time, two goroutines
// find out about the same failures.
func TestSenderAndReceiverMayRetryAtTheSameTime(t *testing.T) {
	t.Parallel()
	retry := plain()
	retry.Backoff = policy.Backoff{Initial: time.Microsecond, Max: time.Millisecond, Multiplier: 2}
	r := mustNew(t, mustSet(t, config(retry)), quiet)
	s := scene{Server: testserver.Start(t, testserver.Keep(4)), retrier: r}
	s.conn = s.Dial(t, r.DialOptions()...)
	failed := 0
	for i := range 300 {
		n := 5 + i%20
		s.On(get,
			testserver.Play(testserver.Receive(1+i%n)).Then(down()),
			testserver.Play().Then(down()),
			testserver.Play(testserver.Receive(1+i%3)).Then(down()),
			testserver.Play(testserver.EchoAll()))
		if !s.echoes(t, n) {
			failed++
		}
	}
	if failed > 0 || r.Replayed() != 0 {
		t.Errorf("%d streams of 300 were not answered in full; %d bytes kept", failed, r.Replayed())
	}
}

// echoes says whether n messages that one goroutine sends come back to another.
func (s scene) echoes(t *testing.T, n int) bool {
	t.Helper()
	stream := s.open(t, t.Context(), bidiStream, interceptor.Idempotent())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if err := stream.SendMsg(wrapperspb.String(fmt.Sprint(i))); err != nil {
				t.Errorf("SendMsg: %v", err)
			}
		}
		_ = stream.CloseSend()
	})
	got, err := receive(stream)
	wg.Wait()
	for i, text := range got {
		if text != fmt.Sprint(i) {
			t.Fatalf("got %v", got)
		}
	}
	return len(got) == n && err == io.EOF
}
