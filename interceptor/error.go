// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/accounts"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/policy"
)

// Error is the error of a call, with details from stagger. Its text and its status are those of the last attempt, unchanged:
// status.FromError, status.Code and errors.As return the same as without stagger. The text says more only if the policies' defaultTimeout
// ends the call: that, and why no attempt was sent in parallel with a slow one; and if the context ended before the last attempt had a
// stream on its connection. If the call's end hides the error of an earlier attempt, errors.Is and errors.As find that as well. To get the
// details:
//
//	if e, ok := errors.AsType[*interceptor.Error](err); ok {
//		log.Printf("gave up after %d attempts in %v: %s", e.Attempts, e.Elapsed, e.Reason)
//	}
//
// Logged with log/slog as the value of an attribute, it includes the details.
type Error struct {
	Attempts int           // sent; 0 if admission or a circuit breaker refused the first
	Elapsed  time.Duration // from the call's start to its end
	Reason   policy.Reason // why the call was not retried again
	// Commit says what has committed the call to an attempt, if Reason is committed: "message" or "headers" if the application has received
	// them, "context" after a call of Context, "buffer_full" for a message that didn't fit into the replay buffer, "prepared_message" for a
	// grpc.PreparedMsg, or "unsendable" for a message that no attempt could send. It is a string for logs. Programs should use Reason.
	Commit string

	// WaitedFor says what the call waited for when its context ended: the "response" of a server, a "connection", a free "stream" on a
	// connection whose server allows no more (MAX_CONCURRENT_STREAMS), the "backoff", or an "answer" to another call while all fail. It is ""
	// for other ends, if the context was over before, and if gRPC doesn't tell, as of a wait in an inner interceptor. It is a string for logs.
	WaitedFor string

	// Answers describes the responses that prevented another attempt, if Reason is [policy.ReasonNotProvenFast] or
	// [policy.ReasonSlowEverywhere].
	Answers Answers
	// RetryAfter is how long to wait before you call again, with jitter, or 0 if that is unknown. It is the rest of the delay that the
	// server has asked for with grpc-retry-pushback-ms, RetryInfo or retry-after, and at most 24 hours. If Reason is budget_exhausted, and
	// the budget is the policy file's or the default one, it is at least the time until the budget pays for one retry without any success.
	// It doesn't say whether another call may help: docs/runbook.md#reasons says after which reasons it may.
	RetryAfter time.Duration

	err  error  // the one that the caller gets
	last error  // of an earlier attempt, if err hides that; else nil
	note string // about the deadline, or ""

	gaveUp bool // the call has given up in an incoming call, whose handler may return this error
}

// Error returns the text of the last attempt's error.
func (e *Error) Error() string { return e.cause().Error() + e.note }

// cause returns the error for the caller. An Error that a test makes has none, and its reason stands for it.
func (e *Error) cause() error {
	if e.err == nil {
		return errors.New("stagger: " + string(e.Reason))
	}
	return e.err
}

// GRPCStatus returns the last attempt's status. As with gRPC's own errors, it is nil for an error
// without a status, which status.FromError then reports as UNKNOWN.
func (e *Error) GRPCStatus() *status.Status {
	st, ok := status.FromError(e.cause())
	switch {
	case !ok:
		return nil
	case e.note == "":
		return st
	}
	p := st.Proto()
	p.Message += e.note
	return status.FromProto(p)
}

// LogValue implements [slog.LogValuer]: the text as error, then code, reason, commit, waitedFor, answers, attempts and elapsed, as in
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
	if e.WaitedFor != "" {
		attrs = append(attrs, slog.String("waitedFor", e.WaitedFor))
	}
	if text := e.Answers.String(); text != "" {
		attrs = append(attrs, slog.String("answers", text))
	}
	if e.RetryAfter > 0 {
		attrs = append(attrs, slog.String("retryAfter", e.RetryAfter.String()))
	}
	return slog.GroupValue(append(attrs, slog.Int("attempts", e.Attempts), slog.String("elapsed", e.Elapsed.String()))...)
}

// Unwrap returns the wrapped errors: the last attempt's, and if that hides an error of an earlier attempt, that one.
func (e *Error) Unwrap() []error {
	if e.last == nil {
		return []error{e.cause()}
	}
	return []error{e.cause(), e.last}
}

// failure returns the error for the caller. It is nil after success, and for a reply that was to be retried, but
// was not.
func (c *call) failure(end *attempts.End) *Error {
	err := end.Err
	if end.ResultOf == 0 && err == nil {
		err = c.errorOfWait(end)
	}
	if err == nil {
		return nil
	}
	note := ""
	if c.waitedFor == waitedForStream && !isResponse(err) {
		note = "; no stream was opened for it: the server's limit (MAX_CONCURRENT_STREAMS) may be reached"
	}
	if c.flags&byDefaultTimeout != 0 && end.Reason == policy.ReasonDeadlineExceeded {
		note += fmt.Sprintf("; the call had no deadline, and defaultTimeout (interceptor.WithDefaultTimeout) is %v", c.entry.defaultTimeout)
		if end.Refusal != "" {
			note += fmt.Sprintf("; no other attempt was sent when this one was slow: %s", end.Refusal)
		}
	}
	return &Error{
		Attempts: end.Attempts, Elapsed: clock.Now() - c.start, Reason: end.Reason, Commit: string(end.Commit),
		WaitedFor: c.waitedFor, Answers: answersOf(end.Reason, &end.Answers), RetryAfter: c.retryAfter(end),
		err: err, last: end.Last, note: note,
	}
}

// longestRetryAfter bounds Error.RetryAfter: a server may send any number, and a loop obeys it.
const longestRetryAfter = 24 * time.Hour

// retryAfter returns Error.RetryAfter. The engine has added jitter to a server's delay.
func (c *call) retryAfter(end *attempts.End) time.Duration {
	after := min(end.Pushback, longestRetryAfter)
	paid, ok := c.entry.budget.(*accounts.Balance)
	if end.Reason != policy.ReasonBudgetExhausted || !ok {
		return after
	}
	wait := paid.TimeToRetry(clock.Time(clock.Now()))
	return max(after, wait+time.Duration(c.retrier.random()*float64(wait)/2)) // many calls are refused at once, and one retry is paid
}

// connClosing is gRPC's text for a closed connection.
const connClosing = "grpc: the client connection is closing"

var errConnClosing = status.Error(codes.Canceled, connClosing)

// errorOfWait returns the error of a call that ended while it waited for its next attempt.
func (c *call) errorOfWait(end *attempts.End) error {
	if end.Reason == policy.ReasonClosed {
		return errConnClosing
	}
	st := status.FromContextError(context.DeadlineExceeded)
	if errors.Is(c.ctx.Err(), context.Canceled) {
		st = status.FromContextError(context.Canceled)
	}
	before := ""
	if end.Last == nil {
		before = "; no server had returned an error"
	}
	return status.Errorf(st.Code(), "%s before attempt %d%s", st.Message(), end.Attempts+1, before)
}

// withNewer returns err, which RecvMsg has returned after the end of a call, with the details of that: a server may have said more than the
// end of a context.
func withNewer(shown, err error) error {
	before, failed := errors.AsType[*Error](shown)
	switch {
	case !failed, err == nil:
		return err
	case before.err.Error() == err.Error():
		return shown
	}
	again := *before
	again.err, again.note = err, ""
	return &again
}
