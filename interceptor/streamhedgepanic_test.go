// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

type panicsInRecv struct{ grpc.ClientStream }

func (panicsInRecv) RecvMsg(any) error { panic("further in") }

func TestAPanicInAnAttemptOfAHedgedStreamComesUpInTheApplication(t *testing.T) {
	for name, row := range map[string]struct {
		number  int // the attempt that panics
		opening bool
		wait    time.Duration // before the application receives
	}{
		"when the first is opened": {1, true, 0},
		"when a hedge is opened":   {2, true, 0},
		"in the first":             {1, false, 0},
		"in a hedge":               {2, false, 0},
		"before anybody receives":  {2, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			purse := &purse{grants: 10}
			play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.SendHeader(nil)).Then(testserver.Hang())) // RecvMsg follows the headers
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				n := 0
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						n++
						if n == row.number && row.opening {
							panic("further in")
						}
						stream, err := open(ctx, desc, cc, method, opts...)
						if n == row.number {
							stream = panicsInRecv{stream}
						}
						return stream, err
					}))...)
				defer func() {
					if got := recover(); got != "further in" || n != row.number {
						t.Errorf("recovered %v after %d attempts", got, n)
					}
					if purse.bad != 1 || purse.started != 1 || s.retrier.Replayed() != 0 {
						t.Errorf("the budget: %v; %d bytes kept", purse, s.retrier.Replayed())
					}
				}()
				stream, err := conn.NewStream(ctx, bidiStream, get)
				if err != nil {
					t.Fatal(err)
				}
				send(t, stream, "x")
				time.Sleep(row.wait)
				err = stream.RecvMsg(new(wrapperspb.StringValue))
				t.Error(err)
			}, interceptor.WithBudget("", purse), described(t))
		})
	}
}
