// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// What commits a stream need not be an answer: one that comes late pays nothing back.
func TestAnAnswerIsLateOrNotWhateverHasCommittedItsStream(t *testing.T) {
	for name, row := range map[string]struct {
		takes time.Duration
		look  func(stream grpc.ClientStream)
		want  int // extra attempts that are paid back
	}{
		"in time":                     {500 * ms, func(grpc.ClientStream) {}, 1},
		"in time, context asked for":  {500 * ms, func(s grpc.ClientStream) { s.Context() }, 1},
		"late, context asked for":     {2 * time.Second, func(s grpc.ClientStream) { s.Context() }, 0},
		"late, headers came in time":  {2 * time.Second, func(s grpc.ClientStream) { _, _ = s.Header() }, 1},
		"late, the buffer was filled": {2 * time.Second, func(s grpc.ClientStream) { _ = s.SendMsg(wrapperspb.String("a")) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			retry := hasty()
			retry.Budget = ""
			p := &purse{Budget: budget.Unlimited, grants: 9}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, testserver.Play().Then(down()), testserver.Play(testserver.SendHeader(nil), testserver.Pause(row.takes), say("a")))
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
				time.AfterFunc(200*ms, func() { row.look(stream) }) // of the second attempt
				if got, err := receive(stream); len(got) != 1 || p.refunded != row.want {
					t.Errorf("%v, %v; the budget: %s; want %d refunded", got, err, p, row.want)
				}
			}, interceptor.WithBudget("", p))
		})
	}
}

func TestAMessageThatCameEarlyAndCannotBeDecodedEndsTheStreamAsInGRPC(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"bidi": bidiStream, "client": clientStream} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.SendRaw([]byte{0xff})))
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
