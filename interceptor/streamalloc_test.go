// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
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

func TestAMessageAllocatesNothingBeforeNorAfterCommitment(t *testing.T) {
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
