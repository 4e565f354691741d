// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package repeating lets package observe/repeat see the calls of a Retrier that have succeeded, so that clients without it link none
// of it.
package repeating

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/policy"
)

// Install makes a [*interceptor.Retrier] use a repeater. Package interceptor, which imports this one, sets it when a program starts.
var Install func(retrier any, repeats Repeater)

// Repeater makes second calls.
type Repeater interface {
	// Begin is called when the Retrier has been made. typeOf returns the type of a message of protobuf's, or nil.
	Begin(diagnose func(severity string, d policy.Diagnostic), typeOf func(m any) protoreflect.MessageType)
	// Copy returns a copy of the request of a unary call, before its first attempt; nil if the message isn't protobuf's.
	Copy(req any) proto.Message
	// Unary is called before the application gets the reply. given is the result of Copy: inner interceptors may have changed req.
	Unary(second func() *Call, given proto.Message, req, reply any, invoke grpc.UnaryInvoker)
	// Stream returns the stream for the application. It calls second once that has been read to its end.
	Stream(second func() *Call, desc *grpc.StreamDesc, open grpc.Streamer, first grpc.ClientStream) grpc.ClientStream
	Close()
}

// Call is what a second call needs.
type Call struct {
	Ctx      context.Context
	Deadline time.Time // zero: none
	Conn     *grpc.ClientConn
	Method   string
	Name     string // for diagnostics
	Options  []grpc.CallOption
}
