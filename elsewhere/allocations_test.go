// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package elsewhere_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/grpctest"
)

// finished ends an attempt at once, as gRPC does.
func finished(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(nil)
		}
	}
	return nil
}

// TestElsewhereAllocations counts what the record of backends costs calls that succeed at once.
func TestElsewhereAllocations(t *testing.T) {
	r := newRetrier(t, mustParse(t, balanced(aroundRoundRobin)), withJournal(new(journal)))
	unary := r.Unary()
	for name, row := range map[string]struct {
		config string
		method string
		want   float64
	}{
		"without the policy": {plainRoundRobin, get, 1},
		"with it":            {aroundRoundRobin, get, 1},
		"with it, hedged":    {aroundRoundRobin, list, 1},
		"one attempt only":   {aroundRoundRobin, "/acme.users.v1.UserService/GetUser", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := grpctest.Start(t, 1, `{"loadBalancingConfig": `+row.config+`}`)
			testkit.NoError(t, b.Conn.Invoke(t.Context(), create, &emptypb.Empty{}, &emptypb.Empty{}))
			call := func(conn *grpc.ClientConn) func() {
				return func() { _ = unary(context.Background(), row.method, nil, nil, conn, finished) }
			}
			if got, bare := testing.AllocsPerRun(1000, call(b.Conn)), testing.AllocsPerRun(1000, call(nil)); got != bare+row.want {
				t.Errorf("%v allocations, %v without a connection; want %v more", got, bare, row.want)
			}
		})
	}
}
