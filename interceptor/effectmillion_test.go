// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The same for many more calls, to a server that is a function.
func TestNothingTakesEffectTwiceInAMillionCalls(t *testing.T) {
	t.Parallel()
	calls := enough(1_000_000)
	e := newEffects(calls)
	unary := mustNew(t, mustSet(t, eager()), quiet).Unary()
	list := faults()
	synctest.Test(t, func(t *testing.T) {
		invoke := func(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			n := req.(int)
			if chance := e.chance(n); chance < 0.9 {
				tell(opts, &net.IPAddr{}, nil)
				f := mishap(list, chance)
				if f == nil || !f.before {
					e.made[n].Add(1)
				}
				return f.fail(ctx)
			}
			err := status.Error(codes.Unavailable, "no connection")
			tell(opts, nil, err)
			return err
		}
		crowd(calls, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			method := "/acme.eager.v1." + []string{"Beside", "InPlace", "Hedged"}[n%3] + "/Create"
			e.answered[n] = unary(ctx, method, n, nil, nil, invoke) == nil
		})
	})
	e.check(t, calls/10)
}

// tell does what gRPC does with the options of a call: it names the peer if there was a stream, and says
// that the call has ended.
func tell(opts []grpc.CallOption, peer net.Addr, err error) {
	for _, o := range opts {
		if o, ok := o.(grpc.PeerCallOption); ok && peer != nil {
			o.PeerAddr.Addr = peer
		}
	}
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}

// fail is the fault as a client sees it, who gives up what is silent.
func (f *fault) fail(ctx context.Context) error {
	switch {
	case f == nil:
		return nil
	case f.silent:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	default:
		return status.Error(codes.Unavailable, f.name)
	}
}
