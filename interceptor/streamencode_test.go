// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// Small messages share memory when they are kept.
func TestMessagesOfAllSizesAreReplayedAsTheyWere(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll()).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1<<20))
		var want []string
		m := new(wrapperspb.StringValue)
		for i := range 300 {
			m.Value = strings.Repeat(string(rune('a'+i%26)), i*7%1100) // none, tiny, and around the pool's threshold
			want = append(want, m.GetValue())
			if err := stream.SendMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		m.Value = "the application uses its message again"
		_ = stream.CloseSend()
		got, err := receive(stream)
		if !slices.Equal(got, want) || err != io.EOF || !slices.Equal(s.heard(0), want) {
			t.Errorf("%d messages, %v; want the %d that were sent", len(got), err, len(want))
		}
	})
}

// tallying is a codec of a program that registers its own for protobuf.
type tallying struct {
	encoding.CodecV2

	messages *int
}

func (c tallying) Marshal(v any) (mem.BufferSlice, error) {
	*c.messages++
	return c.CodecV2.Marshal(v)
}

func TestAnotherCodecForProtobufEncodesEveryMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.EchoAll()))
		n := 0
		stream := s.open(t, t.Context(), bidiStream, grpc.ForceCodecV2(tallying{encoding.GetCodecV2(encodingproto.Name), &n}))
		send(t, stream, "a", "b", "c", "d", "e")
		_ = stream.CloseSend()
		if got, err := receive(stream); len(got) != 5 || err != io.EOF || n != 10 {
			t.Errorf("%v, %v; it encoded %d messages, want 5 twice: to be kept, and to be sent", got, err, n)
		}
	})
}

func TestAKeptMessageAllocatesNothingMore(t *testing.T) {
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
