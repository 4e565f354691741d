// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// Observer is told what happens to calls. Fields that are nil are not called.
//
// Functions run inside the call that they are told of, one at a time for each call, from any
// goroutine; they must be safe for concurrent use, and must not block, nor panic: a panic may come up
// in a timer's goroutine, where nobody can recover it. What they are given holds nothing that changes
// later. They may use the Retrier, to reload it or to set its mode, and make calls: no lock of the Retrier is held.
type Observer struct {
	// Attach is given the Retrier when that is made: its readings ([Retrier.Budgets], [Retrier.Waiting],
	// [Retrier.Policy]) are there for whoever shows them.
	Attach func(*Retrier)
	// CallStart is told of every call when it begins. The call has the context that it returns: the given one, or one
	// made of it. Attempts and later events have it too. Call follows, unless an inner interceptor panics.
	CallStart func(context.Context, CallStartEvent) context.Context
	// Attempt is told of every attempt when it has ended.
	Attempt func(context.Context, AttemptEvent)
	// Decision is told what follows an attempt that failed, or that has used up its per-attempt
	// timeout and may still be running.
	Decision func(context.Context, DecisionEvent)
	// Sent is told of every extra attempt when it is sent, with the decision that has allowed it: at once, or after the
	// wait. A call may end while it waits, and a budget or the connection may still refuse then.
	Sent func(context.Context, DecisionEvent)
	// Call is told of every call when it has ended.
	Call func(context.Context, CallEvent)
	// Reload is told of every change of the policies, and of every one that was refused. It runs in the
	// goroutine that reloads.
	Reload func(ReloadEvent)
	// Mode is told of every change by [Retrier.SetMode] and [Retrier.Switch], in the goroutine that makes it. Without any Mode function,
	// changes go to [slog.Default].
	Mode func(ModeEvent)
	// Warning is told what is not wrong but may surprise: once for each warning of the policy file
	// when the Retrier is made, and once for each misuse that only calls can show, the first thousand. Of severity
	// error, it is told that the file that [Watch] follows is refused, and then of each error in it. Without any
	// Warning function, all this goes to [slog.Default].
	Warning func(policy.Diagnostic)
	// Note is told what is worth knowing, once, when the Retrier is made. Without any Note function, notes go to
	// [slog.Default], at level info.
	Note func(policy.Diagnostic)
}

// CallStartEvent is a call that begins.
type CallStartEvent struct {
	Method string
	Target string // of the ClientConn, in the form of its CanonicalTarget
}

// AttemptEvent is one attempt that has ended.
type AttemptEvent struct {
	Method  string
	Target  string // of the ClientConn, in the form of its CanonicalTarget
	Number  int    // 1 is the first
	Start   time.Time
	Elapsed time.Duration
	Code    codes.Code
	Err     error    // as gRPC returned it; nil after OK
	Peer    net.Addr // nil if the attempt did not reach a connection
	Hedge   bool     // it was sent beside others, which had not answered in time
	// Place is how it came out beside others: "won", its answer is the call's; "lost", it failed, or answered when another
	// had won; "cancelled", since another had won, or the call had ended; "abandoned", it was slow, and another attempt has
	// taken its place. It is "" if no other attempt ran, nor took its place.
	Place string

	IdempotencyKey string // that the attempt carried; "" for none
}

// DecisionEvent is what follows an attempt.
type DecisionEvent struct {
	Method string
	Target string
	Budget string // that the policy names; "" is the default budget
	// Attempt is the number of the attempt that failed or timed out. It is 0 if admission would have refused the call in mode
	// ENFORCE.
	Attempt  int
	Peer     net.Addr // its backend; nil if it did not reach a connection, or still runs
	Code     codes.Code
	Codes    []codes.Code // of the attempts that have ended before, in the order of their ends
	TimedOut bool         // the per-attempt timeout has fired; without a retry the attempt goes on
	// Retry says that another attempt follows, after Delay, for Reason; else Reason is why none does. In mode OBSERVE none
	// follows: with Shadow it would, but for the mode, and Reason and Delay say which.
	Retry, Shadow bool
	Delay         time.Duration
	Reason        policy.Reason
	Commit        string      // with [policy.ReasonCommitted] what has committed the attempt, as in [Error]
	Pushback      string      // what the server has named a delay in, or forbidden retries: "grpc-retry-pushback-ms", "RetryInfo", "retry-after"; "" if it has not
	Mode          policy.Mode // of the call

	StaticMethod bool // the call has grpc.StaticMethod, as those of generated code have
}

// ReloadEvent is a change of the policies that a Retrier follows, or one that was refused.
type ReloadEvent struct {
	Source  string          // the policy file, as it was given; "" if the set was made from Go values
	Hash    string          // of its text ([policy.Set.Hash]); "" if it could not be read or has mistakes
	Changes []policy.Change // by name; none if the file differs in comments or spelling only, or was refused
	Err     error           // why it was refused, so that the policies from before hold; nil if they are followed
}

// ModeEvent is a change by [Retrier.SetMode] or [Retrier.Switch], of one service or of all.
type ModeEvent struct{ From, To Switch }

// CallEvent is one call that has ended.
type CallEvent struct {
	Method   string
	Target   string
	Budget   string // that the policy names; "" is the default budget
	Attempts int
	Retries  int // of the attempts, those that followed another
	Hedges   int // of the attempts, those that were sent beside others
	Start    time.Time
	Elapsed  time.Duration
	Waited   time.Duration // in backoffs, with no attempt running
	Code     codes.Code
	Codes    []codes.Code // of its attempts, in the order of their ends; nil if the first has succeeded
	Err      error        // as the caller gets it; nil after OK
	Reason   policy.Reason
	Decided  bool        // a DecisionEvent has given the reason
	Mode     policy.Mode // of the call, and not only of its policy: one that a percentage leaves out is OFF

	IdempotencyKey string // that its attempts carried; "" for none
	StaticMethod   bool   // the call has grpc.StaticMethod, as those of generated code have
}
