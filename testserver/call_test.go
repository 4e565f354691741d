// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// contextStream is a stream that has a context, and nothing else.
type contextStream struct {
	grpc.ServerStream
	context func() context.Context
}

func (s contextStream) Context() context.Context { return s.context() }

// At the deadline gRPC's timer may cancel a handler's context before the deadline ends it. The answer is the same.
func TestHang_CancelledAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		cancel()
		c := &call{stream: contextStream{context: func() context.Context { return ctx }}}
		for _, want := range []codes.Code{codes.Canceled, codes.DeadlineExceeded} {
			if err := c.finish(Hang()); status.Code(err) != want || !c.cancelled {
				t.Errorf("%v; want %v", err, want)
			}
			time.Sleep(time.Second) // until the deadline
		}
	})
}
