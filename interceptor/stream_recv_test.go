// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/moves"
)

func TestStreamRecv_EarlyNotDecodable(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"bidi": bidiStream, "client": clientStream} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.SendRaw([]byte{0xff})))
				stream := s.open(t, t.Context(), desc)
				synctest.Wait()
				if err := stream.SendMsg(wrapperspb.String("a")); err != io.EOF {
					t.Fatalf("SendMsg: %v; want EOF, since the stream has ended", err)
				}
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				if status.Code(err) != codes.Internal || !strings.HasPrefix(status.Convert(err).Message(), "grpc: failed to unmarshal the received message: ") {
					t.Errorf("%v; want gRPC's error", err)
				}
				synctest.Wait()
				if got := fmt.Sprint(s.Count(get), len(s.calls), s.retrier.Replayed()); got != "1 1 0" {
					t.Errorf("attempts, ends and bytes kept: %s; want one, one and none", got)
				}
			}, described(t))
		})
	}
}

// ended is what SendMsg says of a stream that the server has ended: io.EOF, after which RecvMsg
// tells how.
func ended(t *testing.T, stream grpc.ClientStream) {
	t.Helper()
	if err := stream.SendMsg(wrapperspb.String("more")); err != io.EOF {
		t.Errorf("SendMsg to a stream that has ended: %v; want io.EOF", err)
	}
}

func TestStreamRecv_CutFirstMessage(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), moves.Cut()), moves.Play(moves.Receive(1), say("a", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b]" || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

// A client stream can bring its reply and then fail. gRPC has then decoded the reply already, and a
// codec that adds to what it finds would mix it with that of the next attempt.
func TestStreamRecv_ReplyEmptied(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			moves.Play(moves.Receive(0), moves.SendRaw([]byte("bad"))).Then(down()),
			moves.Play(moves.Receive(0), moves.SendRaw([]byte("good"))))
		stream := s.open(t, t.Context(), clientStream, grpc.ForceCodec(notes{"forced"}))
		_ = stream.CloseSend()
		reply := new(note)
		if err := stream.RecvMsg(reply); err != nil || reply.text != "good" || s.Count(get) != 2 {
			t.Errorf("%q, %v after %d attempts", reply.text, err, s.Count(get))
		}
	})
}
