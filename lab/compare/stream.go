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
	desc grpc.StreamDesc
	run  func(grpc.ClientStream) error // after the first message was sent
	do   func(grpc.ServerStream) error // after the first message was received
}

var message = wrapperspb.String(strings.Repeat("x", messageSize))

var (
	shortStream  = streamKind{grpc.StreamDesc{ServerStreams: true}, download, func(s grpc.ServerStream) error { return send(s, 1) }}
	serverStream = streamKind{grpc.StreamDesc{ServerStreams: true}, download, func(s grpc.ServerStream) error { return send(s, messages) }}
	clientStream = streamKind{grpc.StreamDesc{ClientStreams: true}, upload, func(s grpc.ServerStream) error {
		if err := receiveAll(s); err != nil {
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

func receiveAll(s messageStream) error {
	m := new(wrapperspb.StringValue)
	for {
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func download(s grpc.ClientStream) error {
	if err := s.CloseSend(); err != nil {
		return err
	}
	return receiveAll(s)
}

func upload(s grpc.ClientStream) error {
	if err := send(s, messages-1); err != nil && !errors.Is(err, io.EOF) { // RecvMsg says why
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	return s.RecvMsg(new(wrapperspb.StringValue))
}

// streamed opens and ends streams of a connection.
func streamed(conn *grpc.ClientConn, kind streamKind) func() error {
	options := []grpc.CallOption{grpc.StaticMethod()}
	return func() error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s, err := conn.NewStream(ctx, &kind.desc, streamMethod, options...)
		if err != nil {
			return err
		}
		if err := send(s, 1); err != nil && !errors.Is(err, io.EOF) { // RecvMsg says why
			return err
		}
		return kind.run(s)
	}
}
