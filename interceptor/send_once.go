// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// sendOnce prevents gRPC from keeping messages, so that it cannot send them again after a server has refused the stream. It
// follows the caller's own option, which limits stagger's replay buffer.
var sendOnce = grpc.MaxRetryRPCBufferSize(0)

// onceCredentials wraps the caller's credentials, if any, for an attempt of a stream that gRPC must not send
// again by itself: gRPC asks for them each time that it makes a stream for the attempt, and they refuse the second time.
// Unlike the stream's own methods, inner interceptors can't wrap them.
type onceCredentials struct {
	callers credentials.PerRPCCredentials // nil: none
	asked   atomic.Bool
}

var _ credentials.PerRPCCredentials = (*onceCredentials)(nil)

// errSentOnce is the error of an attempt that gRPC would have sent again.
var errSentOnce = status.Error(codes.Unavailable, "the server has refused the stream, and transparentRetry is DENY")

// withSendOnce returns the options of a stream's attempt, with those that prevent gRPC from sending it again.
func (o *callOptions) withSendOnce(opts []grpc.CallOption) []grpc.CallOption {
	c := new(onceCredentials)
	for _, option := range o.caller {
		if option, ok := promoted(option).(grpc.PerRPCCredsCallOption); ok {
			c.callers = option.Creds
		}
	}
	return append(opts, grpc.PerRPCCredentials(c))
}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (c *onceCredentials) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	switch {
	case c.asked.Swap(true):
		return nil, errSentOnce
	case c.callers == nil:
		return nil, nil //nolint:nilnil // no credentials, as the interface says it
	default:
		return c.callers.GetRequestMetadata(ctx, uri...)
	}
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (c *onceCredentials) RequireTransportSecurity() bool {
	return c.callers != nil && c.callers.RequireTransportSecurity()
}
