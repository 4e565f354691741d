// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// keepBuffers returns an invoker that replaces invoke for all attempts of a unary call. A CodecV2 may return the message's
// own buffers when it encodes it, and gRPC frees them. So keepBuffers encodes the request once, before the first attempt,
// and each attempt gets a reference that gRPC may free. Unused references keep buffers from their pool, not
// from the garbage collector.
//
// It returns invoke itself if the request can't be retried, or holds no buffers of gRPC's.
func (r *Retrier) keepBuffers(p *decision.Policy, o *callOptions, flags callFlags, req any, invoke grpc.UnaryInvoker) grpc.UnaryInvoker {
	if min(p.MaxAttempts(), o.maxAttempts) < 2 && flags&configPending == 0 || o.mode != policy.ModeEnforce {
		return invoke
	}
	if protobufType(req) != nil || !mayHoldBuffers(req) {
		return invoke
	}
	codec := codecOf(o.caller)
	if _, copies := codec.(bytesCodec); copies || codec == nil || isGRPCs(codec) {
		return invoke
	}
	kept, err := codec.Marshal(req)
	if err != nil || !refCounted(kept) {
		return invoke // gRPC reports the error
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		kept.Ref()
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// refCounted reports whether freeing a buffer of data has an effect.
func refCounted(data mem.BufferSlice) bool {
	for _, b := range data {
		if _, plain := b.(mem.SliceBuffer); !plain {
			return true
		}
	}
	return false
}
