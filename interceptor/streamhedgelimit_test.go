// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestAHedgedStreamKeepsUpToItsLimitAndCommitsBeyond(t *testing.T) {
	for name, row := range map[string]struct {
		beyond int
		want   policy.Reason
		sent   string
	}{
		"at the limit": {0, "", "[0s 100ms 130ms]"},
		"beyond it":    {1, policy.ReasonCommitted, "[0s 100ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, down().Delay(130*ms), takes(time.Second, "sum"), testserver.Hang())
				// A message is its text, 2 bytes of protobuf before that, and gRPC's 5.
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(40))
				send(t, stream, strings.Repeat("x", 13))
				time.Sleep(110 * ms) // there are two attempts
				send(t, stream, strings.Repeat("y", 13+row.beyond))
				_ = stream.CloseSend()
				got, err := receive(stream)
				if reasonOf(err) != row.want || row.want == "" && fmt.Sprint(got) != "[sum]" || s.sent() != row.sent {
					t.Errorf("%v, %v (%s), sent %s", got, err, reasonOf(err), s.sent())
				}
				if want := fmt.Sprint(row.beyond); strings.Count(s.heardBy()[1], "y") != 13 && want == "0" {
					t.Errorf("the second attempt heard %s", s.heardBy()[1])
				}
				if got := s.retrier.Replayed(); got != 0 {
					t.Errorf("%d bytes are kept", got)
				}
			})
		})
	}
}

func TestAMessageThatCannotBeSentEndsAHedgedStream(t *testing.T) {
	for name, wait := range map[string]time.Duration{"with one attempt": 0, "with two": 150 * ms} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, testserver.Hang())
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxCallSendMsgSize(10))
				send(t, stream, "a")
				time.Sleep(wait)
				start := time.Now()
				err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", 100)))
				if err == nil { // it was kept, and an attempt has found that it cannot be sent
					_, err = receive(stream)
				}
				if status.Code(err) != codes.ResourceExhausted || time.Since(start) != 0 {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				s.overOnce(t, codes.ResourceExhausted, 1+int(wait/(150*ms)))
			})
		})
	}
}

func TestAStreamThatIsSentTwoKindsOfMessagesHedgesThemAll(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), takes(time.Second, "2"))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if err := stream.SendMsg(wrapperspb.Bytes([]byte("b"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * ms)
		if err := stream.SendMsg(wrapperspb.Bytes([]byte("c"))); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		_, _ = receive(stream)
		if got := fmt.Sprint(s.heardBy()[1]); got != "[a b c]." {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}
