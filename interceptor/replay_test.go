// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/decision"
)

// replayOf is a buffer of a Retrier that may keep sum bytes, of which it has taken total.
func replayOf(limit int, total *atomic.Int64, sum int64) replayBuffer {
	return replayBuffer{limit: limit, total: total, sum: sum}
}

// keep encodes and adds a message as a stream does.
func (r *replayBuffer) keep(m any) (kept bool, why decision.Commit) {
	var e encoded
	why = new(encoder).encode(m, &e)
	return why == decision.CommitNone && r.appendMessage(&e), why
}

func TestReplayBuffer_Copies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*chunkSize)
	dynamic := dynamicpb.NewMessage(wrapperspb.String("").ProtoReflect().Descriptor())
	dynamic.Set(dynamic.Descriptor().Fields().ByName("value"), dynamic.NewField(dynamic.Descriptor().Fields().ByName("value")))
	for _, row := range []struct {
		name     string
		messages []any
	}{
		{"nothing", nil},
		{"protobuf", []any{wrapperspb.String("a"), wrapperspb.String(""), wrapperspb.String(long), wrapperspb.String("b")}},
		{"two types", []any{wrapperspb.String("a"), wrapperspb.Bytes([]byte("b")), wrapperspb.String("c")}},
		{"dynamic messages", []any{dynamic}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var total atomic.Int64
			r := replayOf(1<<20, &total, 1<<20)
			for _, m := range row.messages {
				if kept, why := r.keep(m); !kept {
					t.Fatal(m, why)
				}
			}
			for i, want := range row.messages {
				got, err := r.message(i).decode()
				if err != nil || fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
					t.Errorf("message %d is %T %.20v, %v; want %T", i, got, got, err, want)
				}
				if m, ok := want.(proto.Message); ok && (got == want || !proto.Equal(got.(proto.Message), m)) {
					t.Errorf("message %d is %v; want a copy of %v", i, got, want)
				}
			}
		})
	}
}

// Applications reuse their messages.
func TestReplayBuffer_MessageUsedAgain(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	r := replayOf(1<<30, &total, 1<<30)
	m, of := new(wrapperspb.StringValue), new(encoder)
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i), 1+i%5*1000) } // some share a chunk
	for i := range 1000 {
		m.Value = text(i)
		if e := new(encoded); of.encode(m, e) != decision.CommitNone || !r.appendMessage(e) {
			t.Fatal(i)
		}
	}
	for i := range 1000 {
		if got, err := r.message(i).decode(); err != nil || got.(*wrapperspb.StringValue).GetValue() != text(i) {
			t.Fatalf("message %d is %v, %v", i, got, err)
		}
	}
}

func TestReplayBuffer_Cannot(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		message any
		why     decision.Commit // that it is not kept
	}{
		{7, decision.CommitUnsendable},
		{nil, decision.CommitUnsendable},
		{wrapperspb.String("\xff"), decision.CommitUnsendable},
		{new(grpc.PreparedMsg), decision.CommitPreparedMessage},
	} {
		var total atomic.Int64
		r := replayOf(1<<20, &total, 1<<20)
		if kept, why := r.keep(row.message); kept || why != row.why {
			t.Errorf("%T: kept %v, %q; want %q", row.message, kept, why, row.why)
		}
	}
}

// Every buffer is filled to its own limit exactly, and all together to the Retrier's exactly, whatever they have
// taken ahead.
func TestReplayBuffer_Limits(t *testing.T) {
	t.Parallel()
	const limit, sum = 10_000, 35_000
	chance := rand.New(rand.NewPCG(1, 2))
	var total atomic.Int64
	buffers := make([]replayBuffer, 5)
	for i := range buffers {
		buffers[i] = replayOf(limit, &total, sum)
	}
	for range 5000 {
		r := &buffers[chance.IntN(len(buffers))]
		if chance.IntN(100) == 0 {
			r.release()
		}
		size := messageHeader + chance.IntN(300)
		others := total.Load() - int64(r.reserved)
		fits := r.used+size <= limit && others+int64(r.used+size) <= sum
		if got := r.appendMessage(&encoded{data: make([]byte, size-messageHeader)}); got != fits {
			t.Fatalf("%d bytes beside %d: kept %v; the others have %d of %d", size, r.used, got, others, sum)
		}
		if r.reserved < r.used || r.reserved > r.used+r.used/8+1 || r.reserved > limit || total.Load() > sum {
			t.Fatalf("%d bytes are reserved for %d, %d in all", r.reserved, r.used, total.Load())
		}
	}
	for i := range buffers {
		buffers[i].release()
		if len(buffers[i].messages) > 0 || buffers[i].chunks != nil {
			t.Errorf("buffer %d holds messages after its release", i)
		}
	}
	if total.Load() != 0 {
		t.Errorf("%d bytes are taken after all have let go", total.Load())
	}
}

// The memory that messages share is at most twice their size, plus one chunk.
func TestReplayBuffer_Memory(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	for _, size := range []int{0, 1, 100, chunkSize - 4, chunkSize - 3, chunkSize - 2, 100_000} { // and 3 bytes for protobuf
		r, of := replayOf(1<<20, &total, 1<<20), new(encoder)
		for n := 0; n < 100 && r.used < 500_000; n++ {
			if e := new(encoded); of.encode(wrapperspb.Bytes(make([]byte, size)), e) != decision.CommitNone || !r.appendMessage(e) {
				t.Fatal(n)
			}
		}
		held := 0
		for _, chunk := range r.chunks {
			held += cap(chunk)
		}
		if held > 2*r.used+chunkSize || cap(of.chunk) > chunkSize {
			t.Errorf("messages of %d bytes: %d bytes hold %d", size, held, r.used)
		}
		r.release()
	}
}

func TestReplayBuffer_Closed(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	r := replayOf(1<<20, &total, 1<<20)
	if kept, _ := r.keep(wrapperspb.String("a")); !kept || total.Load() == 0 {
		t.Fatalf("kept %v, %d bytes", kept, total.Load())
	}
	r.close()
	if kept, _ := r.keep(wrapperspb.String("b")); kept || total.Load() != 0 || len(r.messages) != 0 {
		t.Errorf("kept %v after the end, %d bytes", kept, total.Load())
	}
}

func TestReplayLimit(t *testing.T) {
	t.Parallel()
	type wrapped struct{ grpc.CallOption }
	type embedded struct {
		grpc.MaxRetryRPCBufferSizeCallOption
	}
	for name, row := range map[string]struct {
		opts []grpc.CallOption
		want int
	}{
		"default":     {[]grpc.CallOption{grpc.StaticMethod()}, maxReplayBytesPerCall},
		"gRPC's":      {[]grpc.CallOption{grpc.MaxRetryRPCBufferSize(7)}, 7},
		"wrapped":     {[]grpc.CallOption{wrapped{grpc.MaxRetryRPCBufferSize(7)}}, 7},
		"by pointer":  {[]grpc.CallOption{&wrapped{grpc.MaxRetryRPCBufferSize(7)}}, 7},
		"embedded":    {[]grpc.CallOption{embedded{grpc.MaxRetryRPCBufferSizeCallOption{MaxRetryRPCBufferSize: 7}}}, 7},
		"of two last": {[]grpc.CallOption{wrapped{grpc.MaxRetryRPCBufferSize(7)}, grpc.MaxRetryRPCBufferSize(9)}, 9},
	} {
		if got := replayLimit(row.opts); got != row.want {
			t.Errorf("%s: %d; want %d", name, got, row.want)
		}
	}
}
