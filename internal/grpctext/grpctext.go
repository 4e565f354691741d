// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package grpctext recognises errors by their texts, where several errors of gRPC have one code.
package grpctext

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// BadMessage reports whether an error is grpc-go's for a message that it can't encode, send or decode. Servers in Go use the same texts.
func BadMessage(st *status.Status) bool {
	begins := func(text string) bool { return strings.HasPrefix(st.Message(), text) }
	switch st.Code() {
	case codes.ResourceExhausted:
		return slices.ContainsFunc(tooLarge, begins)
	case codes.Internal:
		return slices.ContainsFunc(unfit, begins)
	default:
		return false
	}
}

// Dropped reports whether a picker has dropped an RPC without a stream, as xDS and grpclb balancers do to
// shed load. gRPC itself does not retry it either. The texts are grpc-go's own; err may wrap the status.
func Dropped(code codes.Code, err error) bool {
	if code != codes.Unavailable {
		return false
	}
	text := Message(err)
	return slices.Contains(drops, text) || strings.HasPrefix(text, "max requests ") && strings.Contains(text, " exceeded on service ")
}

var drops = []string{
	"RPC is dropped",
	"request dropped by grpclb",
}

// AwaitedConnection reports whether err is grpc-go's for a call whose context has ended while it waited for a connection. err may wrap the
// status.
func AwaitedConnection(err error) bool {
	text := Message(err)
	return strings.HasSuffix(text, " while waiting for connections to become ready") || strings.HasPrefix(text, "latest balancer error: ")
}

// AwaitedStream reports whether err may be grpc-go's for a call whose context has ended while it waited for a free stream: the text is the
// context's alone. So is that of a call whose context was over before. err may wrap the status.
func AwaitedStream(err error) bool {
	text := Message(err)
	return text == context.Canceled.Error() || text == context.DeadlineExceeded.Error()
}

// Deterministic reports whether err is an error for a message as such, on either side: the same
// message fails again. Only the text distinguishes it from a server's other refusals, not the code or
// trailers. err may wrap the status.
func Deterministic(code codes.Code, err error) bool {
	message := Message(err)
	return aboveLimit(code, message) || code == codes.Internal && (strings.HasPrefix(message, cardinality) ||
		slices.ContainsFunc(unfit, func(text string) bool { return strings.HasPrefix(message, text) }))
}

// statusError is an error that has a status, as gRPC's have.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// Message returns the message of the status that err is or wraps, as gRPC made it, or "".
func Message(err error) string {
	inner, ok := errors.AsType[statusError](err)
	if !ok {
		return ""
	}
	return inner.GRPCStatus().Message()
}

// cardinality begins grpc-go's texts for a server that sends no reply to a unary call, or several.
const cardinality = "cardinality violation:"

// tooLarge are the beginnings of grpc-go's texts for messages above a size limit.
var tooLarge = []string{
	"trying to send message larger than max",
	"grpc: message too large (",
	"grpc: received message larger than max",
	"grpc: message after decompression larger than max",
	"grpc: received message after decompression larger than max",
}

// unfit are the beginnings of grpc-go's texts for messages and headers that this client can't encode or decode.
var unfit = []string{
	"grpc: Compressor is not installed",
	"grpc: Decompressor is not installed",
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
