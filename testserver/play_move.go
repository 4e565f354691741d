// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Move is one action of [Play] in a stream. Moves run one after the other: while the
// server sends or pauses, it receives nothing. [Server.On] reports invalid values.
type Move struct {
	name    string
	do      func(*call) error
	headers bool // sends only headers
	sends   bool // sends messages, and headers before the first
	last    bool // must be the last; its error ends the attempt
	err     error
}

// Receive waits for n messages from the client, or until it half-closes; with 0, only until it half-closes.
func Receive(n int) Move {
	return receiving("Receive", n, nil)
}

func receiving(name string, n int, answer func(*call, []byte) error) Move {
	m := Move{name: name, sends: answer != nil}
	switch {
	case n < 0:
		m.err = fmt.Errorf("%s(%d): want 0 or more", name, n)
	case n == 0:
		n = untilHalfClose
	}
	m.do = func(c *call) error {
		if answer == nil {
			return c.receive(n, nil)
		}
		return c.receive(n, func(b []byte) error { return answer(c, b) })
	}
	return m
}

// SendHeader sends response headers, which commit the call by gRFC A6. It must come before all
// messages. Without it, headers go out with the first message.
func SendHeader(md metadata.MD) Move {
	md = lower(md)
	return Move{
		name:    "SendHeader",
		do:      func(c *call) error { return c.sendHeader(md) },
		headers: true,
		err:     checkKeys("SendHeader", md),
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
	m := Move{name: name, sends: true, do: func(c *call) error { return c.sendAll(messages) }}
	if len(messages) == 0 {
		m.err = fmt.Errorf("%s(): want at least one message", name)
	}
	return m
}

// Echo receives n messages, and sends each back unchanged. It ends early
// when the client half-closes; with 0, only then.
func Echo(n int) Move { return receiving("Echo", n, (*call).send) }

// Pause waits d ≥ 0. If the client goes away, it ends early, and with it the attempt.
func Pause(d time.Duration) Move {
	m := Move{name: "Pause", do: func(c *call) error { return c.wait(d) }}
	if d < 0 {
		m.err = fmt.Errorf("Pause(%v): want 0 or more", d)
	}
	return m
}

// Cut sends a part of a message and cuts the connection in its middle, with all its running
// calls: their clients see UNAVAILABLE. Previous messages arrive complete. It must be the last move,
// and replaces the end. If the client does not read, or the connection is encrypted, so that the middle
// of a message can't be found, it cuts the connection after
// 100 ms.
func Cut() Move { return Move{name: "Cut", do: (*call).cut, sends: true, last: true} }

// checkMoves returns an error for an invalid move, or one in the wrong place.
func checkMoves(moves []Move) error {
	var errs []error
	sent := false
	for i, m := range moves {
		switch {
		case m.err != nil:
			errs = append(errs, fmt.Errorf("Play: move %d: %w", i+1, m.err))
		case m.do == nil:
			errs = append(errs, fmt.Errorf("Play: move %d is Move{}: want Receive(…), Send(…) or another", i+1))
		case m.headers && sent:
			errs = append(errs, fmt.Errorf("Play: move %d: %s: headers have gone out before: want it first", i+1, m.name))
		case m.last && i < len(moves)-1:
			errs = append(errs, fmt.Errorf("Play: move %d: %s: nothing can follow: want it last", i+1, m.name))
		}
		sent = sent || m.headers || m.sends
	}
	return errors.Join(errs...)
}
