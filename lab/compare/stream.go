// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	messages    = 1000 // of a stream
	messageSize = 100  // bytes
)

// streamKind is which side sends many messages.
type streamKind struct {
	desc    grpc.StreamDesc
	sent    int                           // messages
	receive func(messageStream) error     // after all were sent
	do      func(grpc.ServerStream) error // after the first message was received
}

var message = wrapperspb.String(strings.Repeat("x", messageSize))

var (
	shortStream  = streamKind{grpc.StreamDesc{ServerStreams: true}, 1, drain, func(s grpc.ServerStream) error { return send(s, 1) }}
	serverStream = streamKind{grpc.StreamDesc{ServerStreams: true}, 1, drain, func(s grpc.ServerStream) error { return send(s, messages) }}
	clientStream = streamKind{grpc.StreamDesc{ClientStreams: true}, messages, receive, func(s grpc.ServerStream) error {
		if err := drain(s); err != nil {
			return err
		}
		return send(s, 1)
	}}
)

// messageStream is either side of a stream.
type messageStream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

func send(s messageStream, n int) error {
	for range n {
		if err := s.SendMsg(message); err != nil {
			return err
		}
	}
	return nil
}

func drain(s messageStream) error {
	m := new(wrapperspb.StringValue)
	for {
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func receive(s messageStream) error { return s.RecvMsg(new(wrapperspb.StringValue)) }

// streaming returns an operation that opens and ends a stream.
func streaming(open opener, kind streamKind) func() error {
	options := []grpc.CallOption{grpc.StaticMethod()}
	return func() error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s, err := open(ctx, &kind.desc, streamMethod, options...)
		if err != nil {
			return err
		}
		if err := send(s, kind.sent); err != nil && !errors.Is(err, io.EOF) { // RecvMsg says why
			return err
		}
		if err := s.CloseSend(); err != nil {
			return err
		}
		return kind.receive(s)
	}
}
