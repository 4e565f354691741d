// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// note is a message of a codec that knows nothing of protobuf, and adds to what it finds.
type note struct{ text string }

type notes struct{ name string }

func (notes) Marshal(v any) ([]byte, error) {
	n, ok := v.(*note)
	if !ok {
		return nil, fmt.Errorf("%T is no note", v)
	}
	return []byte(n.text), nil
}

func (notes) Unmarshal(data []byte, v any) error {
	v.(*note).text += string(data)
	return nil
}

func (c notes) Name() string   { return c.name }
func (c notes) String() string { return c.name }

type notes2 struct{ notes }

func (c notes2) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.notes.Marshal(v)
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (c notes2) Unmarshal(data mem.BufferSlice, v any) error {
	return c.notes.Unmarshal(data.Materialize(), v)
}

func init() { encoding.RegisterCodec(notes{"registered"}) }

func TestAnyCodecIsReplayedUnderItsOwnName(t *testing.T) {
	for name, row := range map[string]struct {
		opts []grpc.CallOption
		want string
	}{
		"ForceCodec":         {[]grpc.CallOption{grpc.ForceCodec(notes{"Forced"})}, "application/grpc+forced"},
		"ForceCodecV2":       {[]grpc.CallOption{grpc.ForceCodecV2(notes2{notes{"forced2"}})}, "application/grpc+forced2"},
		"CallContentSubtype": {[]grpc.CallOption{grpc.CallContentSubtype("registered")}, "application/grpc+registered"},
		"CallCustomCodec":    {[]grpc.CallOption{grpc.CallCustomCodec(notes{"custom"})}, "application/grpc"}, //nolint:staticcheck // gRPC still has it
		"the last one wins":  {[]grpc.CallOption{grpc.ForceCodec(notes{"first"}), grpc.ForceCodecV2(notes2{notes{"last"}})}, "application/grpc+last"},
		"a subtype beside a codec": {
			[]grpc.CallOption{grpc.CallContentSubtype("proto"), grpc.ForceCodec(notes{"forced"})},
			"application/grpc+proto",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get,
					testserver.Play(testserver.Receive(1), testserver.Receive(1)).Then(down()),
					testserver.Play(testserver.ReceiveAll(), testserver.SendRaw([]byte("the sum"))))
				stream := s.open(t, t.Context(), clientStream, row.opts...)
				n := &note{}
				for _, n.text = range []string{"a", "", "c"} {
					if err := stream.SendMsg(n); err != nil {
						t.Fatal(err)
					}
				}
				_ = stream.CloseSend()
				reply := new(note)
				if err := stream.RecvMsg(reply); err != nil || reply.text != "the sum" {
					t.Errorf("%q, %v", reply.text, err)
				}
				if len(s.Attempts()) != 2 {
					t.Fatalf("%d attempts", len(s.Attempts()))
				}
				for _, a := range s.Attempts() {
					if got := fmt.Sprint(a.Metadata["content-type"]); got != "["+row.want+"]" {
						t.Errorf("content type %s; want %s", got, row.want)
					}
				}
				if got := fmt.Sprintf("%q", s.Attempts()[1].Requests); got != `["a" "" "c"]` {
					t.Errorf("the second attempt heard %s", got)
				}
			})
		})
	}
}

func TestTheDefaultCodecIsNotNamed(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		_, _ = receive(stream)
		for _, a := range s.Attempts() {
			if got := fmt.Sprint(a.Metadata["content-type"]); got != "[application/grpc]" {
				t.Errorf("content type %s, which gRPC does not send", got)
			}
		}
	})
}

func TestAReplayIsCompressedLikeTheFirstAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll()).Then(down()), testserver.Play(testserver.EchoAll()))
		p := new(payloads)
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithStatsHandler(p))...)
		stream, err := conn.NewStream(t.Context(), bidiStream, get, grpc.UseCompressor(gzip.Name))
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("long ", 10_000) // 50 KB, in gRPC's own buffers
		send(t, stream, long, "short", long)
		_ = stream.CloseSend()
		got, err := receive(stream)
		if err != io.EOF || len(got) != 3 || got[0] != long || got[1] != "short" || got[2] != long {
			t.Errorf("%d messages, %v", len(got), err)
		}
		if p.squeezed != 4 || len(p.sent) != 6 {
			t.Errorf("%d of %d messages were compressed; want two of three in each of two attempts", p.squeezed, len(p.sent))
		}
	})
}

func TestAPreparedMessageIsSentAndCommits(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(1), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.UseCompressor(gzip.Name))
		send(t, stream, "a")
		time.Sleep(time.Second)
		send(t, stream, "b") // the second attempt
		p := new(grpc.PreparedMsg)
		if err := p.Encode(stream, wrapperspb.String("prepared")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := stream.SendMsg(p); err != nil {
				t.Fatal(err)
			}
		}
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[a b prepared prepared]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestAMessageThatCannotBeEncodedEndsTheStreamWithGRPCsError(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.ReceiveAll()))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		err := stream.SendMsg(&note{"no protobuf"})
		if err == nil || !strings.Contains(err.Error(), "error while marshaling") {
			t.Errorf("SendMsg: %v", err)
		}
		if again := stream.RecvMsg(new(wrapperspb.StringValue)); again != err {
			t.Errorf("RecvMsg: %v; want the error of SendMsg", again)
		}
	})
}

func TestTheBytesThatAreKeptAreThoseOfTheFirstAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream, grpc.ForceCodecV2(encoding.GetCodecV2(encodingproto.Name)))
		m := wrapperspb.String(strings.Repeat("x", 5000))
		want, _ := proto.Marshal(m)
		if err := stream.SendMsg(m); err != nil {
			t.Fatal(err)
		}
		m.Value = strings.Repeat("y", 5000)
		_, _ = receive(stream)
		for _, a := range s.Attempts() {
			if !bytes.Equal(a.Request, want) {
				t.Errorf("attempt %d heard %.20q…", a.Number, a.Request)
			}
		}
	})
}

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
