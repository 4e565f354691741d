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
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
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

// counting is a codec that counts what it encodes, and the buffers that do not come back.
type counting struct {
	letters

	encoded, out *atomic.Int64
}

func newCounting() counting { return counting{encoded: new(atomic.Int64), out: new(atomic.Int64)} }

func (c counting) Get(n int) *[]byte { c.out.Add(1); return new(make([]byte, n)) }
func (c counting) Put(*[]byte)       { c.out.Add(-1) }

func (c counting) Marshal(v any) (mem.BufferSlice, error) {
	c.encoded.Add(1)
	data, err := proto.Marshal(v.(proto.Message))
	if err != nil {
		return nil, err
	}
	b := c.Get(2 << 10) // smaller ones are not pooled
	*b = (*b)[:copy(*b, data)]
	return mem.BufferSlice{mem.NewBuffer(b, c)}, nil
}

func (counting) Unmarshal(data mem.BufferSlice, v any) error {
	return proto.Unmarshal(data.Materialize(), v.(proto.Message))
}

func TestAMessageIsEncodedToBeKeptAndForEachAttemptAndItsBuffersComeBack(t *testing.T) {
	replies := func(stream grpc.ClientStream) { _, _ = receive(stream) }
	for name, row := range map[string]struct {
		script []testserver.Step
		limit  int
		sent   int
		then   func(stream grpc.ClientStream)
		most   int64 // encoded: to be kept, and for each attempt
	}{
		"answered at once": {[]testserver.Step{testserver.Play(testserver.EchoAll())}, 1 << 20, 100, replies, 200},
		"replayed": {
			[]testserver.Step{testserver.Play(testserver.Receive(100)).Then(down()), down(), testserver.Play(testserver.EchoAll())},
			1 << 20, 100, replies, 400,
		},
		"failed":    {[]testserver.Step{testserver.Play(testserver.Receive(100)).Then(down())}, 1 << 20, 100, replies, 500},
		"forgotten": {[]testserver.Step{testserver.Play(testserver.ReceiveAll())}, 1 << 20, 100, func(grpc.ClientStream) {}, 200},
		// The first that does not fit commits the stream, and what follows is not kept.
		"too much": {[]testserver.Step{testserver.Play(testserver.EchoAll())}, 100, 100, replies, 113},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.script...)
				codec := newCounting()
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, bidiStream, grpc.ForceCodecV2(codec), grpc.MaxRetryRPCBufferSize(row.limit))
				for n := range row.sent {
					send(t, stream, fmt.Sprint(n))
				}
				_ = stream.CloseSend()
				synctest.Wait()
				row.then(stream)
				cancel()
				synctest.Wait()
				if n := codec.encoded.Load(); n < int64(row.sent) || n > row.most || codec.out.Load() != 0 {
					t.Errorf("%d messages are encoded, want at most %d; %d buffers are not given back", n, row.most, codec.out.Load())
				}
			})
		})
	}
}

func TestARequestForTheRestGivesItsBufferBack(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("a")).Then(down()), testserver.Play(testserver.Receive(1), say("b")))
		codec := newCounting()
		rest := func(proto.Message) (proto.Message, bool) { return wrapperspb.String("the rest"), true }
		stream := s.open(t, t.Context(), serverStream, grpc.ForceCodecV2(codec), interceptor.Resume(rest))
		send(t, stream, "all")
		got, _ := receive(stream)
		synctest.Wait()
		if fmt.Sprint(got) != "[a b]" || codec.out.Load() != 0 {
			t.Errorf("%v; %d buffers are not given back", got, codec.out.Load())
		}
	})
}

// A server may answer before it is asked, and the request be on its way still when the rest is asked for.
func TestARequestThatIsLateIsNotSentBesideTheOneForTheRest(t *testing.T) {
	for name, late := range map[string]time.Duration{
		"in the backoff": 1050 * ms, "beside the next attempt": 1500 * ms, "after the end": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
					if n > 1 {
						return stream
					}
					return &spy{stream, func(any) { time.Sleep(late) }}
				})
				s.On(get,
					testserver.Play(say("a"), testserver.Pause(time.Second)).Then(down()),
					testserver.Play(testserver.Receive(1), say("b"), testserver.Pause(time.Second)))
				rest := func(proto.Message) (proto.Message, bool) { return wrapperspb.String("the rest"), true }
				stream := s.open(t, t.Context(), serverStream, interceptor.Resume(rest))
				go func() {
					if err := stream.SendMsg(wrapperspb.String("all")); err != nil {
						t.Errorf("SendMsg: %v", err)
					}
				}()
				if got, _ := receive(stream); fmt.Sprint(got) != "[a b]" || fmt.Sprint(s.heard(1)) != "[the rest]" || s.Count(get) != 2 {
					t.Errorf("%v; the second of %d attempts heard %v", got, s.Count(get), s.heard(1))
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// doubler sends every message twice.
type doubler struct{ grpc.ClientStream }

func (d doubler) SendMsg(m any) error {
	if err := d.ClientStream.SendMsg(m); err != nil {
		return err
	}
	return d.ClientStream.SendMsg(m)
}

// swallower lets nothing through.
type swallower struct{ grpc.ClientStream }

func (swallower) SendMsg(any) error { return nil }

// queuer sends in a goroutine of its own.
type queuer struct {
	grpc.ClientStream

	queue chan any
}

func queued(stream grpc.ClientStream) grpc.ClientStream {
	q := queuer{stream, make(chan any, 10)}
	go func() {
		for m := range q.queue {
			_ = stream.SendMsg(m)
		}
		_ = stream.CloseSend()
	}()
	return q
}

func (q queuer) SendMsg(m any) error { q.queue <- m; return nil }
func (q queuer) CloseSend() error    { close(q.queue); return nil }

// preparer prepares every message, in a goroutine of its own and with another one before it.
type preparer struct{ grpc.ClientStream }

func (p preparer) SendMsg(m any) error {
	prepared := make(chan error)
	go func() {
		other := new(grpc.PreparedMsg)
		_ = other.Encode(p.ClientStream, wrapperspb.String("another"))
		prepared <- other.Encode(p.ClientStream, m)
	}()
	if err := <-prepared; err != nil {
		return err
	}
	return p.ClientStream.SendMsg(m)
}

// Whatever an interceptor does with the messages of the first attempt, those that follow are sent what the
// application sent, once.
func TestWhatIsReplayedIsWhatTheApplicationSentWhateverIsDoneFurtherIn(t *testing.T) {
	same := func(stream grpc.ClientStream) grpc.ClientStream { return stream }
	for name, row := range map[string]struct {
		first func(stream grpc.ClientStream) grpc.ClientStream
		heard string // by the first attempt
	}{
		"passed on": {same, "[a b]"},
		"doubled":   {func(s grpc.ClientStream) grpc.ClientStream { return doubler{s} }, "[a a b b]"},
		"replaced":  {func(s grpc.ClientStream) grpc.ClientStream { return &signer{s} }, "[a, signed b, signed]"},
		"swallowed": {func(s grpc.ClientStream) grpc.ClientStream { return swallower{s} }, "[]"},
		"queued":    {queued, "[a b]"},
		"prepared":  {func(s grpc.ClientStream) grpc.ClientStream { return preparer{s} }, "[a b]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
					if n == 1 {
						return row.first(stream)
					}
					return stream
				})
				s.On(get, testserver.Play(testserver.ReceiveAll()).Then(down()), testserver.Play(testserver.EchoAll()))
				stream := s.open(t, t.Context(), bidiStream)
				m := wrapperspb.String("a")
				if err := stream.SendMsg(m); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				m.Value = "b" // the application uses its message again
				if err := stream.SendMsg(m); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				m.Value = "c"
				_ = stream.CloseSend()
				got, err := receive(stream)
				if fmt.Sprint(got) != "[a b]" || err != io.EOF || fmt.Sprint(s.heard(0)) != row.heard {
					t.Errorf("%v, %v; the first attempt heard %v, want %s", got, err, s.heard(0), row.heard)
				}
			})
		})
	}
}

// A message may still be on its way to an attempt that has another one in its place.
func TestAMessageThatIsOvertakenIsSentOnce(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &spy{stream, func(any) { time.Sleep(10 * time.Second) }}
		})
		s.On(get, testserver.Play(testserver.Pause(time.Second)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		go func() {
			start := time.Now()
			send(t, stream, "a")
			if time.Since(start) != 10*time.Second {
				t.Errorf("the message was sent after %v; want 10s", time.Since(start))
			}
			send(t, stream, "b")
			_ = stream.CloseSend()
		}()
		if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := s.heard(0); s.Count(get) != 2 || len(got) != 0 {
			t.Errorf("%d attempts, the first heard %v", s.Count(get), got)
		}
	})
}
