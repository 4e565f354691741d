// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// timedOut is the outcome of an attempt that has used up its per-attempt timeout and may still be
// running.
var timedOut = status.New(codes.DeadlineExceeded, "per-attempt timeout")

// outcome is what an attempt that ended with err means to the policy.
func (c *call) outcome(err error) policy.Outcome {
	out := policy.Outcome{
		Status: status.New(codes.OK, ""), Header: c.header, Trailer: c.trailer,
		Again: c.verdict == VerdictRetry, As: c.verdict.code(),
		Final: c.verdict == VerdictFinal || errors.Is(c.ctx.Err(), context.Canceled) || closed(c.cc),
	}
	if err == nil {
		return out // the classifier has said "not yet"
	}
	st, ok := status.FromError(err)
	out.Status = st
	multiplied := c.multiplied()
	out.Unsent = c.unsent() && !multiplied
	// An error without a status comes from an interceptor, not from a server.
	nobodys := !ok || st.Code() == codes.OK
	out.Final = out.Final || nobodys && c.verdict == VerdictByCode || deterministic(err)
	return out
}

// multiplied reports, with a warning, that gRPC may have retried the attempt by itself. Then the
// lack of a stream says nothing of the attempts before.
func (c *call) multiplied() bool {
	if c.alone || !retriesItself(c.cc, c.method) {
		return false
	}
	c.retrier.warnMultiplied(c.method)
	return true
}

// closed reports whether the connection was closed for good.
func closed(cc *grpc.ClientConn) bool {
	return cc != nil && cc.GetState() == connectivity.Shutdown
}

// deterministic reports errors that gRPC makes of a message as such, on either side: the same
// message fails again. Neither code nor trailers tell them from a server's refusal, so the text
// must; it is gRPC's own for Go. err may wrap it.
func deterministic(err error) bool {
	var inner interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &inner) {
		return false
	}
	st := inner.GRPCStatus()
	var texts []string
	switch st.Code() {
	case codes.ResourceExhausted:
		texts = tooLarge
	case codes.Internal:
		texts = unfit
	default:
		return false
	}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(st.Message(), text) })
}

var (
	tooLarge = []string{
		"trying to send message larger than max",
		"grpc: message too large",
		"grpc: received message larger than max",
		"grpc: message after decompression larger than max",
		"grpc: received message after decompression larger than max",
	}
	unfit = []string{
		"cardinality violation:",
		"grpc: Compressor is not installed",
		"grpc: error while compressing",
		"grpc: error while marshaling",
		"grpc: failed to decompress the",
		"grpc: failed to read decompressed data",
		"grpc: failed to unmarshal the received message",
		"grpc: no decompressor available",
		"grpc: peer compressed the response",
		"header key ",
		"header list size to send violates",
		"no codec registered for content-subtype",
	}
)
