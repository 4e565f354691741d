// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults has what tests of this repository do with a testserver, beyond what users need: streams that are
// scripted move by move, and a queue before few workers.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/testserver"
)

// Play returns a [testserver.Stream] that makes moves in a stream, one after the other. Messages go out uncompressed.
// In a unary call, the moves are Receive(1) and Send of one message.
func Play(moves ...Move) testserver.Step {
	moves = slices.Clone(moves)
	step := testserver.Stream(func(stream grpc.ServerStream) error {
		_ = grpc.SetSendCompressor(stream.Context(), encoding.Identity) // fails when another Play has sent headers
		for _, m := range moves {
			if m.cuts {
				return nil
			}
			if err := m.do(stream); err != nil {
				return err
			}
		}
		return nil
	})
	if len(moves) > 0 && moves[len(moves)-1].cuts {
		step = step.Then(testserver.Cut())
	}
	if err := check(moves); err != nil {
		step = step.Invalid(err)
	}
	return step
}

// Move is one action of [Play] in a stream. Moves run one after the other: while the
// server sends or pauses, it receives nothing. [testserver.Server.On] reports invalid values.
type Move struct {
	name    string
	do      func(grpc.ServerStream) error
	headers bool // sends only headers
	sends   bool // sends messages, and headers before the first
	cuts    bool // must be the last
	err     error
}

// Receive waits for n messages from the client, or until it half-closes; with 0, only until it half-closes.
func Receive(n int) Move {
	return receiving("Receive", n, false)
}

// Echo receives n messages, and sends each back unchanged. It ends early
// when the client half-closes; with 0, only then.
func Echo(n int) Move { return receiving("Echo", n, true) }

func receiving(name string, n int, echo bool) Move {
	m := Move{name: name, sends: echo}
	if n < 0 {
		m.err = fmt.Errorf("%s(%d): want 0 or more", name, n)
	}
	m.do = func(stream grpc.ServerStream) error {
		for i := 0; n == 0 || i < n; i++ {
			var b []byte
			switch err := stream.RecvMsg(&b); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			if !echo {
				continue
			}
			if err := stream.SendMsg(b); err != nil {
				return err
			}
		}
		return nil
	}
	return m
}

// SendHeader sends response headers, which commit the call by gRFC A6. It must come before all
// messages. Without it, headers go out with the first message.
func SendHeader(md metadata.MD) Move {
	md = md.Copy()
	return Move{
		name:    "SendHeader",
		do:      func(stream grpc.ServerStream) error { return stream.SendHeader(md) },
		headers: true,
		err:     testserver.OK().Header(md).Err(),
	}
}

// Send sends messages.
func Send(messages ...proto.Message) Move {
	var raw [][]byte
	for _, m := range messages {
		b, err := proto.Marshal(m)
		if err != nil {
			return Move{name: "Send", err: fmt.Errorf("Send(%T): %w", m, err)}
		}
		raw = append(raw, b)
	}
	return sending("Send", raw)
}

// SendRaw sends messages as raw bytes, valid or not.
func SendRaw(messages ...[]byte) Move {
	raw := make([][]byte, 0, len(messages))
	for _, b := range messages {
		raw = append(raw, slices.Clone(b))
	}
	return sending("SendRaw", raw)
}

func sending(name string, messages [][]byte) Move {
	m := Move{name: name, sends: true}
	if len(messages) == 0 {
		m.err = fmt.Errorf("%s(): want at least one message", name)
	}
	m.do = func(stream grpc.ServerStream) error {
		for _, b := range messages {
			if err := stream.SendMsg(b); err != nil {
				return err
			}
		}
		return nil
	}
	return m
}

// Pause waits d ≥ 0. If the client goes away, it ends early, and with it the attempt.
func Pause(d time.Duration) Move {
	m := Move{name: "Pause", do: func(stream grpc.ServerStream) error { return wait(stream.Context(), d) }}
	if d < 0 {
		m.err = fmt.Errorf("Pause(%v): want 0 or more", d)
	}
	return m
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Cut sends a part of a message and cuts the connection in its middle, with all its running
// calls: their clients see UNAVAILABLE. Previous messages arrive complete. It must be the last move,
// and replaces the end. If the client does not read, or the connection is encrypted, so that the middle
// of a message can't be found, it cuts the connection after
// 100 ms.
func Cut() Move { return Move{name: "Cut", sends: true, cuts: true} }

// check returns an error for an invalid move, or one in the wrong place.
func check(moves []Move) error {
	var errs []error
	sent := false
	for i, m := range moves {
		switch {
		case m.err != nil:
			errs = append(errs, fmt.Errorf("Play: move %d: %w", i+1, m.err))
		case m.name == "":
			errs = append(errs, fmt.Errorf("Play: move %d is Move{}: want Receive(…), Send(…) or another", i+1))
		case m.headers && sent:
			errs = append(errs, fmt.Errorf("Play: move %d: %s: headers were sent before: want it first", i+1, m.name))
		case m.cuts && i < len(moves)-1:
			errs = append(errs, fmt.Errorf("Play: move %d: %s: nothing can follow: want it last", i+1, m.name))
		}
		sent = sent || m.headers || m.sends
	}
	return errors.Join(errs...)
}
