// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package repeat

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/internal/hooks/repeating"
)

// stream is a server stream that is repeated when the application has read it to its end.
type stream struct {
	grpc.ClientStream

	x       *repeater
	get     func() *repeating.Call
	desc    *grpc.StreamDesc
	open    grpc.Streamer
	request atomic.Pointer[proto.Message] // may be sent and received in two goroutines
	replies []proto.Message
	bytes   int
	more    bool // there were more replies
	over    bool
}

// Stream implements [repeating.Repeater].
func (x *repeater) Stream(get func() *repeating.Call, desc *grpc.StreamDesc, open grpc.Streamer, first grpc.ClientStream) grpc.ClientStream {
	if desc.ClientStreams || !desc.ServerStreams {
		return first
	}
	return &stream{ClientStream: first, x: x, get: get, desc: desc, open: open}
}

func (s *stream) SendMsg(m any) error {
	s.request.Store(new(s.x.copied(m)))
	return s.ClientStream.SendMsg(m)
}

func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil && !s.more:
		s.keep(s.x.copied(m))
	case errors.Is(err, io.EOF) && !s.over && s.request.Load() != nil:
		s.over = true
		s.repeat(*s.request.Load(), m)
	}
	return err
}

// keep keeps a reply, up to the bound. It is nil if it isn't protobuf's.
func (s *stream) keep(reply proto.Message) {
	s.bytes += memory + proto.Size(reply)
	if s.more = s.bytes > mostCompared; !s.more {
		s.replies = append(s.replies, reply)
	}
}

func (s *stream) repeat(request proto.Message, m any) {
	call := s.get()
	if call == nil {
		return
	}
	again := &second{Call: call, request: request, reply: s.x.typeOf(m), want: s.replies, more: s.more}
	again.open = func(ctx context.Context) (func(any) error, error) {
		opened, err := s.open(ctx, s.desc, call.Conn, call.Method, call.Options...)
		if err != nil {
			return nil, err
		}
		_ = opened.SendMsg(request) // RecvMsg returns its error
		_ = opened.CloseSend()
		return opened.RecvMsg, nil
	}
	s.x.start(again)
}
