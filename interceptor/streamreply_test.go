// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/testserver"
)

// A client stream can bring its reply and then fail. gRPC has then decoded the reply already, and a
// codec that adds to what it finds would mix it with that of the next attempt.
func TestAReplyThatAFailedAttemptOfAStreamFilledIsEmptied(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.ReceiveAll(), testserver.SendRaw([]byte("bad"))).Then(down()),
			testserver.Play(testserver.ReceiveAll(), testserver.SendRaw([]byte("good"))))
		stream := s.open(t, t.Context(), clientStream, grpc.ForceCodec(notes{"forced"}))
		if err := stream.SendMsg(&note{"a"}); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		reply := new(note)
		if err := stream.RecvMsg(reply); err != nil || reply.text != "good" || s.Count(get) != 2 {
			t.Errorf("%q, %v after %d attempts", reply.text, err, s.Count(get))
		}
	})
}
