// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package interceptor_test

import (
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
)

// memory has the allocations of a call, and their bytes.
type memory struct{ allocations, bytes int }

// memoryOf measures a call that runs alone, and returns the minimum of five runs, because heaps of timers and the like grow
// once in many calls. The garbage collector is off, so that pools keep their contents.
func memoryOf(runs int, call func()) memory {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := memory{int(testing.AllocsPerRun(runs, call)), math.MaxInt}
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			call()
		}
		runtime.ReadMemStats(&after)
		least.bytes = min(least.bytes, int(after.TotalAlloc-before.TotalAlloc)/runs)
	}
	return least
}

// TestCost_Streams checks the extra allocations of streams with a Retrier.
func TestCost_Streams(t *testing.T) {
	reply, message := wrapperspb.String(""), wrapperspb.String(strings.Repeat("x", 100))
	protobuf := grpc.ForceCodecV2(encoding.GetCodecV2(encodingproto.Name))
	server := func(through grpc.StreamClientInterceptor) func() {
		return func() {
			stream, l := looped(t, through, serverStream, protobuf)
			_ = stream.SendMsg(message)
			_ = stream.CloseSend()
			for range messages {
				_ = stream.RecvMsg(reply)
			}
			l.over = true
			if err := stream.RecvMsg(reply); err != io.EOF {
				t.Error(err)
			}
		}
	}
	client := func(through grpc.StreamClientInterceptor) func() {
		return func() {
			stream, l := looped(t, through, clientStream, protobuf)
			for range messages {
				_ = stream.SendMsg(message)
			}
			_ = stream.CloseSend()
			_ = stream.RecvMsg(reply)
			l.over = true
		}
	}
	for _, row := range []struct {
		name string
		kind func(grpc.StreamClientInterceptor) func()
		most memory
	}{
		{"server stream of 1,000 messages", server, memory{16, 2700}},
		{"client stream of 1,000 messages, not committed", client, memory{46, 200_000}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := mustNew(t, mustSet(t, config(plain())), quiet)
			with, without := memoryOf(20, row.kind(r.Stream())), memoryOf(20, row.kind(bare))
			got := memory{with.allocations - without.allocations, with.bytes - without.bytes}
			if got.allocations > row.most.allocations || got.bytes > row.most.bytes {
				t.Errorf("%+v more than without a Retrier; want at most %+v", got, row.most)
			}
		})
	}
}

// A message that is too large for the replay buffer is encoded once: by gRPC, and not also to be kept.
func TestCost_TooLargeToKeep(t *testing.T) {
	large := wrapperspb.Bytes(make([]byte, 2<<20)) // looped streams may keep 1 MiB
	small := wrapperspb.Bytes(make([]byte, 500<<10))
	r := mustNew(t, mustSet(t, config(plain())), quiet)
	for name, messages := range map[string][]any{"by itself": {large}, "after others": {small, small, large}} {
		t.Run(name, func(t *testing.T) {
			kept := 0
			for _, m := range messages[:len(messages)-1] {
				kept += len(m.(*wrapperspb.BytesValue).GetValue())
			}
			got := memoryOf(20, func() {
				stream, l := looped(t, r.Stream(), clientStream, grpc.ForceCodecV2(still{}))
				for _, m := range messages {
					testkit.NoError(t, stream.SendMsg(m))
				}
				testkit.NoError(t, stream.CloseSend())
				testkit.NoError(t, stream.RecvMsg(new(wrapperspb.BytesValue)))
				l.over = true
			})
			if extra := got.bytes - kept; extra > 256<<10 {
				t.Errorf("%d bytes more than what is kept; want no copy of the large message", extra)
			}
		})
	}
}
