// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

// payload is what a stream sends before the server answers.
type payload struct {
	name, what     string
	messages, size int
}

// payloads are of 64 KiB each, with what gRPC puts around it.
func payloads() []payload {
	return []payload{
		{"replay, small messages", "64 messages of 1 KiB", 64, 1 << 10},
		{"replay, one message", "one message of 64 KiB", 1, 64 << 10},
	}
}

// replayer is a client with a limit of its own on what it keeps.
type replayer struct {
	client

	name  string
	limit int64
}

// replayers are those that replay client streams, after the one that does not.
func replayers(streams int) []replayer {
	room := int64(streams) << 17
	return []replayer{
		{bare, bare.name, 0},
		{builtIn, builtIn.name, 0},
		{throttled, throttled.name, 0},
		{stagger, fmt.Sprintf("%s, up to %d MiB", ours, room>>20), room},
		{stagger, ours + ", up to 16 MiB (default)", 0},
	}
}

// replaying measures what n streams hold when they have sent, for each client alone: before the server
// answers, and after.
func replaying(n int, what payload) (memory, error) {
	found := memory{name: what.name, what: fmt.Sprintf("what each of %d streams holds on to on the heap that have sent %s, before the answer and after it", n, what.what), commits: true}
	for _, k := range replayers(n) {
		var before, after []float64
		for range 3 { // what else the process does is of the size of the differences
			one, err := replayingOf(k, n, what)
			if err != nil {
				return memory{}, fmt.Errorf("%s: %w", k.name, err)
			}
			before, after = append(before, float64(one.before.Heap)), append(after, float64(one.after.Heap))
		}
		found.held = append(found.held, holding{
			Comparison: found.name, Client: k.name, Count: n,
			Bytes: measure.QuartilesOf(before).Median / float64(n), Committed: measure.QuartilesOf(after).Median / float64(n),
		})
	}
	return found, nil
}

// kept is what streams hold on to before they are committed, and after it.
type kept struct{ before, after measure.Held }

func replayingOf(k replayer, n int, what payload) (kept, error) {
	made, err := k.prepare(plan{backoff: never, replay: k.limit})
	if err != nil {
		return kept{}, err
	}
	answered := make(chan struct{})
	var absorbed atomic.Int64
	s := serve(succeed, func(stream grpc.ServerStream) error {
		defer func() { <-stream.Context().Done() }() // a stream that has ended holds less
		if err := receive(stream, what.messages-1); err != nil {
			return err
		}
		absorbed.Add(1)
		<-answered
		return send(stream, 1)
	})
	defer s.Stop()
	conn, err := s.dial(made.options)
	if err != nil {
		return kept{}, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := errors.Join(ready(conn), idle(func() bool { return true }, nil)); err != nil {
		return kept{}, err
	}
	before := measure.Hold()
	streams := make([]grpc.ClientStream, n)
	for i := range streams {
		if streams[i], err = opened(ctx, conn, what); err != nil {
			return kept{}, err
		}
	}
	if err := idle(func() bool { return absorbed.Load() == int64(n) }, nil); err != nil {
		return kept{}, err
	}
	held := measure.Hold().Since(before)
	close(answered)
	for _, stream := range streams {
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			return kept{}, err
		}
	}
	after := measure.Hold().Since(before)
	runtime.KeepAlive(streams)
	return kept{held, after}, nil
}

// opened is a stream that has sent what it is to send.
func opened(ctx context.Context, conn *grpc.ClientConn, what payload) (grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &bidiStream.desc, streamMethod)
	if err != nil {
		return nil, err
	}
	m := wrapperspb.String(strings.Repeat("x", what.size))
	for range what.messages {
		if err := stream.SendMsg(m); err != nil {
			return nil, err
		}
	}
	return stream, nil
}

func receive(stream grpc.ServerStream, n int) error {
	for range n {
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			return err
		}
	}
	return nil
}
