// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/policy"
)

// Error is the error of a call, with what stagger knows of it. Its text and its status are those
// of the last attempt, unchanged: status.FromError, status.Code and errors.As see what they would
// see without stagger. Only where the call's own end hides what a server has said before, as when the
// deadline passes in the second attempt, the server's error is added to the text. Ask for the rest:
//
//	if e, ok := errors.AsType[*interceptor.Error](err); ok {
//		log.Printf("gave up after %d attempts in %v: %s", e.Attempts, e.Elapsed, e.Reason)
//	}
//
// Logged with log/slog as the value of an attribute, it tells that by itself.
type Error struct {
	Attempts int           // sent; 0 if admission or a circuit breaker refused the first
	Elapsed  time.Duration // from the call's start to its end
	Reason   policy.Reason // why no other attempt followed
	// Commit says, with the reason committed, what has made an attempt the only one: "message" or "headers" that the application
	// has received (or headers that the policy's commitOn waits for), "context", which it has asked for, "buffer_full", a message
	// that did not fit into the replay buffer, "prepared_message", a grpc.PreparedMsg, or "unsendable", a message that no attempt
	// could send.
	Commit string
	// RetryAfter is how long to wait before you make the call again, from when it has returned. It is the server's delay, if the
	// server has named one, else half to all of the policy's maxBackoff; and no less than a ratio budget needs, by estimate, to
	// pay for a retry again. All this has jitter, so that many loops don't come back together.
	//
	// It is 0 if a loop must not make the call again: the call may have taken effect and isn't declared idempotent, the server
	// forbids it, the policy doesn't list the code, the caller has cancelled it, retries are switched off or belong to a
	// caller further up. docs/loops.md has it for each Reason.
	RetryAfter time.Duration

	err  error // what the caller gets
	last error // the last that a server said, if that is another one; nil: there is none
}

// Error is the text of the last attempt's error, with the last error of a server if that is hidden by it.
func (e *Error) Error() string { return e.withLast(e.err.Error()) }

// GRPCStatus is the last attempt's status. Like gRPC's own errors, it is nil for an error that
// carries none, which status.FromError then reports as UNKNOWN.
func (e *Error) GRPCStatus() *status.Status {
	st, ok := status.FromError(e.err)
	switch {
	case !ok:
		return nil
	case e.last == nil:
		return st
	}
	p := st.Proto()
	p.Message = e.withLast(p.GetMessage())
	return status.FromProto(p)
}

func (e *Error) withLast(text string) string {
	if e.last == nil {
		return text
	}
	return text + "; the last server error: " + e.last.Error()
}

// LogValue implements [slog.LogValuer]: the text as error, then code, reason, commit, attempts and elapsed, as in
// the lines of package observe.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("error", e.Error()),
		slog.String("code", codename.Of(status.Code(e))),
		slog.String("reason", string(e.Reason)),
	}
	if e.Commit != "" {
		attrs = append(attrs, slog.String("commit", e.Commit))
	}
	return slog.GroupValue(append(attrs, slog.Int("attempts", e.Attempts), slog.Duration("elapsed", e.Elapsed))...)
}

// Unwrap returns the errors behind this one: what the caller gets, and the last error of a server that is
// hidden by it.
func (e *Error) Unwrap() []error {
	if e.last == nil {
		return []error{e.err}
	}
	return []error{e.err, e.last}
}

// failure is the error that the caller gets; nil after success, and for a reply that means "not yet" when no
// attempt follows it.
func (c *call) failure(end attempts.End) *Error {
	err := end.Err
	if end.Answer == 0 && err == nil {
		err = c.unanswered(end)
	}
	if err == nil {
		return nil
	}
	return &Error{
		Attempts: end.Attempts, Elapsed: clock.Now() - c.start, Reason: end.Reason, Commit: string(end.Commit),
		RetryAfter: end.RetryAfter, err: err, last: end.Last,
	}
}

// connClosing is how gRPC words that the connection was closed.
const connClosing = "grpc: the client connection is closing"

var errConnClosing = status.Error(codes.Canceled, connClosing)

// unanswered is the error of a call that ended while it waited for its next attempt.
func (c *call) unanswered(end attempts.End) error {
	if end.Reason == policy.ReasonClosed {
		return errConnClosing
	}
	st := status.FromContextError(cmp.Or(c.ctx.Err(), context.DeadlineExceeded))
	before := ""
	if end.Last == nil {
		before = "; the attempt before was answered, but not yet"
	}
	return status.Errorf(st.Code(), "%s before attempt %d%s", st.Message(), end.Attempts+1, before)
}
