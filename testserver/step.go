// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Step is the server's behavior for one attempt, in this order: it receives the first message
// (or the client's half-close), calls a function (Before), sends the headers (Header), waits (Delay), sends the
// messages (of OK and RawReplies), and ends, with the trailer. It ends early when the client goes away.
// Serve other streams with [Stream]. The zero Step is OK with an empty message.
//
// A Step is a value: its methods return a changed copy, and several scripts may share a Step.
// [Server.On] reports invalid values.
type Step struct {
	times   int // 0 is 1
	delay   time.Duration
	before  func(context.Context) error // of Before, if set
	header  metadata.MD
	trailer metadata.MD
	streams bool                          // a Stream, or a Random of one: only its function receives
	serve   func(grpc.ServerStream) error // of a Stream
	replies [][]byte                      // nil: one empty message, if the end is OK
	then    *Step                         // the end of a Stream, if set
	end     end
	status  *status.Status // of endFail
	pick    func(*call) Step
	mayDrop bool // pick may return a step that drops the connection
	err     error
}

// end is the kind of a step's end.
type end int

const (
	endOK   end = iota
	endFail     // with status
	endHang
	endDrop
	endCut  // a Drop in the middle of a message
	endPick // with the step that pick returns
)

// OK responds with replies, or with one empty message. Calls that are not server streams need exactly one. With [Step.Then], the call ends
// differently after them.
func OK(replies ...proto.Message) Step {
	var s Step
	for _, m := range replies {
		b, err := proto.Marshal(m)
		if err != nil {
			return s.Invalid(fmt.Errorf("OK(%T): %w", m, err))
		}
		s = s.RawReplies(b)
	}
	return s
}

// Fail fails with code, which must not be OK. The message is "scripted failure" if none is given.
func Fail(code codes.Code, message ...string) Step {
	text := "scripted failure"
	if len(message) > 0 {
		text = strings.Join(message, " ")
	}
	return FailStatus(status.New(code, text))
}

// FailStatus fails with st, details included. Its code must not be OK.
func FailStatus(st *status.Status) Step {
	s := Step{end: endFail, status: st}
	if st.Code() == codes.OK {
		return s.Invalid(errors.New("Fail with code OK: want another code, or OK()"))
	}
	return s
}

// Hang never responds: the attempt ends when the client goes away, its deadline passes or the server stops.
func Hang() Step { return Step{end: endHang} }

// Drop cuts the connection, with all its running calls: their clients see UNAVAILABLE. Headers and messages of the same step are sent
// first. If other calls share the connection, their headers and messages may be lost as well.
func Drop() Step { return Step{end: endDrop} }

// Cut sends a part of a message and cuts the connection in the middle of it, with all its running calls: their clients see UNAVAILABLE.
// What the step sends before arrives complete. If the client does not read, or the connection is encrypted, so that the server can't find
// the middle of a message, it cuts the connection after 100 ms.
func Cut() Step { return Step{end: endCut} }

// errorStep answers with an error of the script.
func errorStep(err error) Step { return Fail(codes.Internal, err.Error()) }

// Err returns an error for invalid values of the step, as [Server.On] would report them, or nil.
func (s Step) Err() error { return s.err }

// Invalid adds an error to the step, which [Server.On] reports. Use it in your own functions that return steps, for wrong arguments.
func (s Step) Invalid(err error) Step {
	s.err = errors.Join(s.err, err)
	return s
}

// Times repeats the step for n attempts, n ≥ 1. The last step of a script repeats forever, whatever
// its Times.
func (s Step) Times(n int) Step {
	if n < 1 {
		return s.Invalid(fmt.Errorf("Times(%d): want at least 1", n))
	}
	s.times = n
	return s
}

// Delay waits d ≥ 0 after the headers, if the step has any, and before the response.
func (s Step) Delay(d time.Duration) Step {
	if d < 0 {
		return s.Invalid(fmt.Errorf("Delay(%v): want 0 or more", d))
	}
	s.delay = d
	return s
}
