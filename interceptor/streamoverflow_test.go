// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A message that does not fit meets an attempt that has failed already, and nobody has received that. The
// call is not committed to what is over: the next attempt is sent what was kept, and the message commits
// the call to that one, as in gRPC.
func TestAMessageThatDoesNotFitCommitsToTheAttemptThatTakesIt(t *testing.T) {
	for limit, want := range map[int]string{
		210: "3 attempts, succeeded ", // two messages of 105 bytes
		209: "2 attempts, committed buffer_full",
	} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, failing(), testserver.Play(testserver.Receive(2)).Then(down()), testserver.Play(testserver.ReceiveAll(), say("ok")))
				stream := s.open(t, t.Context(), clientStream, grpc.MaxRetryRPCBufferSize(limit))
				first, second := strings.Repeat("1", 98), strings.Repeat("2", 98)
				send(t, stream, first)
				time.Sleep(time.Second) // the first attempt has failed
				send(t, stream, second)
				synctest.Wait()
				if got := s.Count(get); got != 2 {
					t.Fatalf("%d attempts when the second message is sent; want 2", got)
				}
				_ = stream.CloseSend()
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil {
					e = new(interceptor.Error)
				}
				if got := fmt.Sprintf("%d attempts, %s %s", s.Count(get), s.calls[0].Reason, e.Commit); got != want {
					t.Errorf("%s (%v); want %s", got, err, want)
				}
				if got := s.heard(1); len(got) != 2 || got[0] != first || got[1] != second {
					t.Errorf("the second attempt heard %d messages: %.5v", len(got), got)
				}
				if got := s.retrier.Replayed(); got != 0 {
					t.Errorf("%d bytes are kept", got)
				}
			})
		})
	}
}

func TestAMessageThatDoesNotFitEndsACallWhoseAttemptsAreUsedUp(t *testing.T) {
	play(t, config(impatient()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play().Then(down()))
		stream := s.open(t, t.Context(), clientStream, grpc.MaxRetryRPCBufferSize(1))
		time.Sleep(time.Second)
		s.Down() // no other can be opened
		if err := stream.SendMsg(wrapperspb.String("a")); err != io.EOF {
			t.Errorf("SendMsg: %v; want EOF", err)
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 1 {
			t.Errorf("%v: %s after %d attempts", err, reasonOf(err), s.Count(get))
		}
	})
}

// One request that does not fit is sent once, and SendMsg says nothing: gRPC has it so.
func TestARequestThatDoesNotFitCommitsAServerStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), serverStream, grpc.MaxRetryRPCBufferSize(1))
		time.Sleep(time.Second)
		send(t, stream, "a")
		_, err := receive(stream)
		s.committedBy(t, err, policy.CommitBufferFull)
	})
}
