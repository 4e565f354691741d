// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

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
