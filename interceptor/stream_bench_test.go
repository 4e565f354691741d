// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// still is a codec that allocates nothing.
type still struct{ letters }

var stillBytes = mem.BufferSlice{mem.SliceBuffer("x")}

func (still) Marshal(any) (mem.BufferSlice, error) { return stillBytes, nil }

// loop is a stream without a connection: what it is sent is encoded, and it brings messages until it is
// told to end.
type loop struct {
	grpc.ClientStream

	codec grpc.ForceCodecV2CallOption
	over  bool
}

func (l *loop) SendMsg(m any) error {
	_, err := l.codec.CodecV2.Marshal(m)
	return err
}

func (*loop) CloseSend() error { return nil }

func (*loop) Header() (metadata.MD, error) { return metadata.MD{}, nil }

func (l *loop) RecvMsg(any) error {
	if l.over {
		return io.EOF
	}
	return nil
}

// looped opens a stream over a loop.
func looped(tb testing.TB, through grpc.StreamClientInterceptor, codec grpc.CallOption) (grpc.ClientStream, *loop) {
	tb.Helper()
	l := new(loop)
	stream, err := through(tb.Context(), bidiStream, nil, get, func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		for _, o := range opts {
			if o, ok := o.(grpc.ForceCodecV2CallOption); ok {
				l.codec = o
			}
		}
		return l, nil
	}, codec, grpc.MaxRetryRPCBufferSize(1<<20))
	if err != nil {
		tb.Fatal(err)
	}
	return stream, l
}

// bare is no interceptor.
func bare(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(ctx, desc, cc, method, opts...)
}

func TestStreamAllocations_Message(t *testing.T) {
	r := mustNew(t, mustSet(t, config(plain())), quiet)
	stream, l := looped(t, r.Stream(), grpc.ForceCodecV2(still{}))
	m := new(int)
	send := func() {
		if err := stream.SendMsg(m); err != nil {
			t.Error(err)
		}
	}
	if n := testing.AllocsPerRun(5000, send); n > 0 {
		t.Errorf("a message that is kept allocates %v times", n)
	}
	if got := r.Replayed(); got < 5000*6 {
		t.Fatalf("%d bytes are kept; want those of 5000 messages", got)
	}
	if n := testing.AllocsPerRun(100, func() { _ = stream.RecvMsg(m) }); n > 0 {
		t.Errorf("a message that is received allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, send); n > 0 || r.Replayed() != 0 {
		t.Errorf("a message that is sent after commitment allocates %v times; %d bytes are kept", n, r.Replayed())
	}
	l.over = true
	if err := stream.RecvMsg(m); err != io.EOF {
		t.Error(err)
	}
}

func TestStreamAllocations(t *testing.T) {
	r := mustNew(t, mustSet(t, config(plain())), quiet)
	m := new(int)
	allocs := func(through grpc.StreamClientInterceptor) float64 {
		return testing.AllocsPerRun(1000, func() {
			stream, l := looped(t, through, grpc.ForceCodecV2(still{}))
			_ = stream.SendMsg(m)
			_ = stream.CloseSend()
			_ = stream.RecvMsg(m)
			l.over = true
			_ = stream.RecvMsg(m)
		})
	}
	if with, without := allocs(r.Stream()), allocs(bare); with > without+11+slack {
		t.Errorf("%v allocations; %v without us, want at most 11 more", with, without)
	}
}

const messages = 1000

// streamed is one stream of a thousand messages each way, on each of three clients: gRPC without
// retries, gRPC with its own, and stagger. All share one server.
func streamed(b *testing.B, desc *grpc.StreamDesc, moves ...testserver.Move) (names []string, run []func()) {
	b.Helper()
	srv := testserver.Start(b, testserver.NoRecord())
	srv.Default(testserver.Play(moves...))
	message := wrapperspb.String(strings.Repeat("x", 100))
	for _, client := range []struct {
		name string
		opts []grpc.DialOption
	}{
		{"grpc", []grpc.DialOption{grpc.WithDisableRetry()}},
		{"grpc-retry", []grpc.DialOption{grpc.WithDefaultServiceConfig(serviceConfig)}},
		{"stagger", mustNew(b, mustSet(b, config(plain())), quiet).DialOptions()},
	} {
		conn := srv.Dial(b, client.opts...)
		names = append(names, client.name)
		run = append(run, func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			stream, err := conn.NewStream(ctx, desc, get)
			if err != nil {
				b.Fatal(err)
			}
			sent := 1
			if desc.ClientStreams {
				sent = messages
			}
			for range sent {
				if err := stream.SendMsg(message); err != nil {
					b.Fatal(err)
				}
			}
			_ = stream.CloseSend()
			reply := new(wrapperspb.StringValue)
			for {
				if err := stream.RecvMsg(reply); err != nil || !desc.ServerStreams {
					return
				}
			}
		})
	}
	return names, run
}

// BenchmarkStreamRatio takes the three clients in turns and reports the medians of their times over
// those of gRPC without retries.
func BenchmarkStreamRatio(b *testing.B) {
	reply := slices.Repeat([]proto.Message{wrapperspb.String(strings.Repeat("x", 100))}, messages)
	for _, kind := range []struct {
		name  string
		desc  *grpc.StreamDesc
		moves []testserver.Move
	}{
		{"server", serverStream, []testserver.Move{testserver.Receive(1), testserver.Send(reply...)}},
		{"client", clientStream, []testserver.Move{testserver.ReceiveAll(), testserver.Send(reply[0])}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			names, run := streamed(b, kind.desc, kind.moves...)
			ratios := make([][]float64, len(run))
			took := make([]float64, len(run))
			for b.Loop() {
				for _, k := range rand.Perm(len(run)) { // in no order: what one leaves behind, another pays for
					began := time.Now()
					run[k]()
					took[k] = float64(time.Since(began))
				}
				for i := range run {
					ratios[i] = append(ratios[i], took[i]/took[0])
				}
			}
			for i, name := range names[1:] {
				slices.Sort(ratios[i+1])
				b.ReportMetric(ratios[i+1][len(ratios[i+1])/2], name+"/grpc")
			}
		})
	}
}

// BenchmarkStreamAllocs counts what a stream of a thousand messages allocates.
func BenchmarkStreamAllocs(b *testing.B) {
	reply := slices.Repeat([]proto.Message{wrapperspb.String(strings.Repeat("x", 100))}, messages)
	names, run := streamed(b, serverStream, testserver.Receive(1), testserver.Send(reply...))
	for i, name := range names {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run[i]()
			}
		})
	}
}

func TestStreamAllocations_Kept(t *testing.T) {
	m := wrapperspb.String(strings.Repeat("x", 100))
	allocs := func(through grpc.StreamClientInterceptor) float64 {
		stream, _ := looped(t, through, grpc.ForceCodecV2(encoding.GetCodecV2(encodingproto.Name)))
		return testing.AllocsPerRun(5000, func() {
			if err := stream.SendMsg(m); err != nil {
				t.Error(err)
			}
		})
	}
	r := mustNew(t, mustSet(t, config(plain())), quiet)
	with, without := allocs(r.Stream()), allocs(bare)
	if with > without || r.Replayed() < 5000*100 {
		t.Errorf("%v allocations, and %v without us; %d bytes are kept", with, without, r.Replayed())
	}
}

// BenchmarkStreamHedgeNotFired is what the readiness to hedge costs a stream that is answered at once, beside
// one that is only retried: a goroutine, which waits for the first message.
func BenchmarkStreamHedgeNotFired(b *testing.B) {
	srv := testserver.Start(b, testserver.NoRecord())
	message := wrapperspb.String(strings.Repeat("x", 100))
	srv.Default(testserver.Play(testserver.ReceiveAll(), testserver.Send(message)))
	slow := hedged(func(h *policy.HedgeSpec) { h.Delay, h.Budget = time.Minute, "" })
	for _, kind := range []struct {
		name     string
		desc     *grpc.StreamDesc
		messages int
	}{{"server", serverStream, 1}, {"client 100", clientStream, 100}} {
		for _, client := range []struct {
			name   string
			policy policy.Config
		}{{"retried", config(plain())}, {"hedged", slow}} {
			conn := srv.Dial(b, mustNew(b, mustSet(b, client.policy), quiet).DialOptions()...)
			b.Run(kind.name+"/"+client.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					short(b, conn, kind.desc, kind.messages, message)
				}
			})
		}
	}
}
