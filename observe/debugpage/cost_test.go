// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package debugpage

import (
	"context"
	"runtime"
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
)

// The race detector makes pools lose some of what they are given, so that only a run without it can count allocations.
func TestPage_SuccessAllocatesNothing(t *testing.T) {
	retrier := newRetrier(t)
	p := newPage(Config{}, []*interceptor.Retrier{retrier})
	unary, ctx, opts := retrier.Unary(), t.Context(), []grpc.CallOption{grpc.StaticMethod()}
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _ = unary(ctx, create, nil, nil, nil, invoke, opts...) }); n != 0 {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
	runtime.KeepAlive(p)
}
