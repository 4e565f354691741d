// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// Error is the error of a call, with what stagger knows of it. Its text and its status are those
// of the last attempt, unchanged: status.FromError, status.Code and errors.As see what they would
// see without stagger. Ask for the rest:
//
//	if e, ok := errors.AsType[*interceptor.Error](err); ok {
//		log.Printf("gave up after %d attempts in %v: %s", e.Attempts, e.Elapsed, e.Reason)
//	}
type Error struct {
	Attempts int           // sent; 0 if a circuit breaker refused the first
	Elapsed  time.Duration // from the call's start to its end
	Reason   policy.Reason // why no other attempt followed
	Commit   policy.Commit // with the reason committed: by what

	err  error // what the caller gets
	last error // of the last attempt, where it is another one
}

// Error is the text of the last attempt's error, unchanged.
func (e *Error) Error() string { return e.err.Error() }

// GRPCStatus is the last attempt's status. Like gRPC's own errors, it is nil for an error that
// carries none, which status.FromError then reports as UNKNOWN.
func (e *Error) GRPCStatus() *status.Status {
	st, ok := status.FromError(e.err)
	if !ok {
		return nil
	}
	return st
}

// Unwrap returns the errors behind this one: what the caller gets, and, if the call was cancelled
// while it waited to retry, the error of the attempt before.
func (e *Error) Unwrap() []error {
	if e.last == nil {
		return []error{e.err}
	}
	return []error{e.err, e.last}
}
