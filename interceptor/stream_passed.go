// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
)

// passedStream is the stream of a call that has one attempt at most, and to whose end nobody listens, as of a method without a policy.
// It is gRPC's own stream, with the caller's options. Only an error of RecvMsg passes through our hands: it becomes an [*Error], as
// that of any other call. Errors of SendMsg and Header, which point to RecvMsg or are the caller's own mistakes, are gRPC's.
type passedStream struct {
	grpc.ClientStream

	call  call
	shown error // RecvMsg has returned it; nil: no error
}

// listens reports whether anybody or anything has to hear how the only attempt of a call ends: an observer, breaker, admission, a
// budget, what is known of its method, a timeout of the policy for calls or messages, or the incoming call in which it is made.
func (c *call) listens() bool {
	return c.entry.responses != nil || c.asksGates() || c.entry.budget != budget.Unlimited || c.entry.policy.Timeout() > 0 ||
		c.entry.policy.MessageTimeout() > 0 || c.retrier.observers.Load().ofCalls || inbound(c.ctx) != nil
}

// openPassed opens the stream of a call to whose end nobody listens.
func openPassed(c call, desc *grpc.StreamDesc, open grpc.Streamer) (grpc.ClientStream, error) {
	s := &passedStream{call: c}
	stream, err := open(s.call.ctx, desc, c.cc, c.method, c.options.unheard()...)
	if err != nil {
		return nil, s.call.passedError(err, nil)
	}
	s.ClientStream = stream
	return s, nil
}

// RecvMsg receives a message.
func (s *passedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil, err == io.EOF:
		return err
	case s.shown == nil:
		s.shown = s.call.passedError(err, s.ClientStream)
	default:
		s.shown = withNewer(s.shown, err)
	}
	return s.shown
}

// passedError returns the error of a call whose only attempt has ended with err. stream is nil if there was none. Only now the engine
// starts, which says why the call is not retried.
func (c *call) passedError(err error, stream grpc.ClientStream) error {
	now := c.now()
	a := &attempt{attemptOptions: newAttemptOptions(false), number: 1, began: c.start, ctx: c.ctx}
	if stream != nil {
		a.report = report{ended: true, trailer: stream.Trailer()}
	}
	c.prepareEngine(new(engineState))
	c.engine.Start(&c.set, now)
	c.reportEnd(a, c.resultOf(a, nil, err, c.contextEnded(a, err, now), now), now)
	c.warnOfFailure(a, err)
	return c.failure(c.end())
}
