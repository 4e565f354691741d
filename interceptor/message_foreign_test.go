// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// rawReply is what say sends, as a frame proxy receives it.
func rawReply(text string) string {
	data, _ := proto.Marshal(wrapperspb.String(text))
	return string(data)
}

func newFrame(text string) *frame { return &frame{mem.BufferSlice{mem.SliceBuffer(text)}} }

func (f *frame) String() string { return string(f.payload.Materialize()) }

// A proxy takes bytes as they are, whatever the generated code that is linked in says of the method.
func TestMessageForeign_Proxy(t *testing.T) {
	inPlace := hasty()
	for name, c := range map[string]spec.Config{"hedge": hedged(), "beside": config(besides()), "in place": config(inPlace)} {
		for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeObserve} {
			for kind, desc := range kinds() {
				t.Run(strings.ReplaceAll(fmt.Sprint(name, " ", mode, " ", kind), " ", "_"), func(t *testing.T) {
					c := c
					c.Mode = string(mode)
					play(t, c, func(t *testing.T, s scene) {
						s.On(get, faults.Play(faults.Receive(1), faults.Pause(300*ms), say("a")))
						stream := s.open(t, t.Context(), desc, grpc.ForceCodecV2(frames{}))
						testkit.NoError(t, stream.SendMsg(newFrame("x")))
						_ = stream.CloseSend()
						time.Sleep(2 * time.Second) // longer than any timeout or delay
						reply := new(frame)
						if err := stream.RecvMsg(reply); err != nil || reply.String() != rawReply("a") {
							t.Errorf("%q, %v; want the server's bytes", reply, err)
						}
						if err := stream.RecvMsg(new(frame)); err != io.EOF {
							t.Errorf("%v; want io.EOF", err)
						}
						s.overOnce(t, codes.OK, s.Count(get))
					}, described(t))
				})
			}
		}
	}
}

// hindered returns headers only when its context is over. Its message has arrived by then.
type hindered struct {
	grpc.ClientStream

	ctx context.Context
}

func (h hindered) Header() (md metadata.MD, err error) {
	md, err = h.ClientStream.Header()
	<-h.ctx.Done()
	return md, err
}

// An attempt that is given up has received a message, which no codec is to decode into another one's type.
func TestMessageForeign_Loser(t *testing.T) {
	for name, c := range map[string]spec.Config{"hedge": hedged(), "in place": config(hasty())} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s = s.within(t, func(ctx context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
					if n == 1 {
						return hindered{stream, ctx}
					}
					return stream
				})
				s.On(get, faults.Play(faults.Receive(1), say("first"), faults.Pause(time.Hour)), faults.Play(faults.Receive(1), say("second")))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				stream := s.open(t, ctx, serverStream, grpc.ForceCodecV2(frames{}))
				testkit.NoError(t, stream.SendMsg(newFrame("x")))
				_ = stream.CloseSend()
				reply := new(frame)
				err := stream.RecvMsg(reply)
				if got := reply.String(); err == nil && got != rawReply("first") && got != rawReply("second") {
					t.Errorf("%q", got)
				}
				cancel()
				synctest.Wait()
				if len(s.calls) != 1 {
					t.Errorf("calls %+v", s.calls)
				}
			})
		})
	}
}

// envelope is a message of the application's that embeds one of protobuf's.
type envelope struct {
	*wrapperspb.StringValue
}

// nest is one whose methods panic while nothing is in it.
type nest struct{ *inlay }

type inlay struct{ wrapperspb.StringValue }

// strict is a codec that takes the application's types alone, as vtprotobuf's does.
type strict struct{ notes2 }

func (strict) Name() string { return "proto" }

func (strict) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *envelope:
		data, err := proto.Marshal(v.StringValue)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	case *nest:
		return mem.BufferSlice{mem.SliceBuffer(rawReply("nest"))}, nil
	}
	return nil, fmt.Errorf("%T is not of this codec", v)
}

func (strict) Unmarshal(data mem.BufferSlice, v any) error {
	m := new(wrapperspb.StringValue)
	switch v := v.(type) {
	case *envelope:
		v.StringValue = m
	case *nest:
		v.inlay = new(inlay)
		m = &v.StringValue
	default:
		return fmt.Errorf("%T is not of this codec", v)
	}
	return proto.Unmarshal(data.Materialize(), m)
}

// Promoted methods without a value behind them panic. They are not called, so no panic happens.
func TestMessageForeign_NothingEmbedded(t *testing.T) {
	for name, c := range map[string]spec.Config{"retry": config(plain()), "hedge": hedged(), "beside": config(besides())} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, down(), faults.Play(faults.Receive(0), say("a")))
				reply := new(nest)
				err := s.conn.Invoke(t.Context(), get, new(nest), reply, grpc.ForceCodec(older{}))
				if err != nil || reply.GetValue() != "a" || s.Count(get) != 2 {
					t.Errorf("unary: %v after %d attempts", err, s.Count(get))
				}
				s.On(get, faults.Play(faults.Receive(0)).Then(down()), faults.Play(faults.Receive(0), say("a")))
				stream := s.open(t, t.Context(), serverStream, grpc.ForceCodecV2(strict{}))
				testkit.NoError(t, stream.SendMsg(new(nest)))
				_ = stream.CloseSend()
				if err := stream.RecvMsg(new(nest)); reasonOf(err) != policy.ReasonCommitted {
					t.Errorf("stream: %v; want the server's error", err)
				}
			})
		})
	}
}

// A codec that is nil is none, as for gRPC itself.
func TestMessageForeign_NilCodec(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("a"))
		err := s.conn.Invoke(t.Context(), get, newFrame("x"), new(frame), grpc.ForceCodecV2(nil))
		if status.Code(err) != codes.Internal {
			t.Errorf("%v; want gRPC's error for a message that is not protobuf's", err)
		}
	})
}
