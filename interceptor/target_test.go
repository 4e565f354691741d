// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Connections to one target share a balance however the target is written, and events name it as gRPC's metrics do.
func TestTargetIsCanonical(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		const canonical = "dns:///127.0.0.1:1"
		for _, target := range []string{"127.0.0.1:1", canonical} {
			conn, err := grpc.NewClient(target, append(s.retrier.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithChainUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
					return nil // nothing is dialled
				}))...)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				t.Error(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		if got := s.retrier.Budgets(); len(got) != 1 || got[0].Target != canonical {
			t.Errorf("%+v; want one of %s", got, canonical)
		}
		for _, c := range s.calls {
			if c.Target != canonical {
				t.Errorf("%s; want %s", c.Target, canonical)
			}
		}
	})
}
