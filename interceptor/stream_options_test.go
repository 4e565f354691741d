// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
)

// An inner interceptor may open two streams with the options of one attempt, and return one of them. gRPC ends the other one when it is
// left, or with the attempt's context. The caller gets the trailer of the one that was returned.
func TestStreamOptions_TwoStreams(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"the other one is left": true, "the other one ends with the attempt": false} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, from("left", moves.Play(moves.Receive(1), say("x"))), from("taken", moves.Play(moves.Receive(1), say("a"))))
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
						open grpc.Streamer, opts ...grpc.CallOption,
					) (grpc.ClientStream, error) {
						leftCtx, leave := context.WithCancel(ctx)
						context.AfterFunc(ctx, leave)
						_, err := open(leftCtx, desc, cc, method, opts...)
						synctest.Wait()
						if leaves {
							defer leave()
						}
						if err != nil {
							return nil, err
						}
						return open(ctx, desc, cc, method, opts...)
					}))...)
				var trailer metadata.MD
				stream := must.Get(conn.NewStream(t.Context(), serverStream, get, grpc.Trailer(&trailer)))(t)
				synctest.Wait()
				must.Do(t, stream.SendMsg(wrapperspb.String("x")))
				must.Do(t, stream.CloseSend())
				must.Do(t, stream.RecvMsg(new(wrapperspb.StringValue)))
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
					t.Error(err)
				}
				synctest.Wait()
				if who := trailer["who"]; len(who) != 1 || who[0] != "taken" {
					t.Errorf("the trailer of %v", who)
				}
			})
		})
	}
}
