// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/policy"
)

// Observer receives events of calls. Nil fields are not called.
//
// Functions run inside the call, in the goroutine that causes the event, in the order of the call's events. If attempts run in parallel,
// two functions may run at the same time. They must be safe for concurrent use, and must not block: other operations of a stream wait for
// them. Before CallEnd, they must not use the stream. They must not panic: a panic may happen in a timer's goroutine, where nothing
// recovers it. Their arguments don't change later. They may make calls and use the Retrier, for example to set its mode: no lock of the
// Retrier is held.
type Observer struct {
	// CallStart is called at the start of every call. It returns the context for the call, its attempts and later events: the
	// given one, or one derived from it. CallEnd follows, unless an inner interceptor panics.
	CallStart func(context.Context, Event) context.Context
	// Attempt is called at the end of every attempt.
	Attempt func(context.Context, Event)
	// Decision is called with the decision after an attempt that failed, or that has used up its per-attempt
	// timeout and may still be running. It is also called when a call ends without a decision: the caller has cancelled
	// it, or its deadline has passed. Attempt is then the last one, or 0 if there was none. In mode OBSERVE, Attempt 0 and
	// [policy.ReasonOverloaded] mean that admission would have refused the call. It is not called if the first attempt succeeds.
	Decision func(context.Context, Event)
	// Wait is called when an extra attempt begins to wait for a connection, with the decision that has allowed it. Decision is
	// not called for it, unless a backoff came first: nothing is sent before there is a connection.
	Wait func(context.Context, Event)
	// Sent is called when an extra attempt is sent, with the decision that has allowed it. The call may end before that.
	Sent func(context.Context, Event)
	// CallEnd is called at the end of every call. The context is still valid, unless the caller or a deadline has ended it.
	CallEnd func(context.Context, CallEnd)
	// Reload is called for every change of the policies. If the Retrier refuses a change, err says why, and the old policies stay in use.
	// The set is nil if the file could not be read or is invalid. Changes are texts such as "maxAttempts of GetOrder 3 → 2": first of the
	// file's hash, then of each setting. It runs in the goroutine that reloads.
	Reload func(set *policy.Set, changes []string, err error)
	// ModeChange is called for every change by [Retrier.SetMode], of one service or of all, in the goroutine that
	// makes it. Without any ModeChange function, changes go to [slog.Default].
	ModeChange func(from, to ModeSwitch)
	// Diagnostic is called with errors, warnings and notes. Warnings and notes about the policies come when the Retrier is made and at each
	// reload. A warning about a misuse that only calls can show comes once for each misuse, and a warning about a full table once for each
	// table. After a hundred warnings of one kind, the last one says that no more follow. A note says when a shared budget (package
	// redisbudget) reaches its store again. If [Watch] refuses its file, one error says so, and one more describes each mistake in the
	// file. Without any Diagnostic function, all this goes to [slog.Default].
	Diagnostic func(policy.Diagnostic)
}

// deaf reports whether the observer has no function.
func (o Observer) deaf() bool { return reflect.ValueOf(o).IsZero() }

// Event is an event of a call, or of one of its attempts, for an [Observer]. Fields whose comments don't name a function are
// zero in it.
type Event struct {
	// The call, in all events.
	Method       string      // "(a name over 256 bytes)" for longer ones
	Target       string      // of the ClientConn, in the form of its CanonicalTarget
	Budget       string      // of the policy; "" is the default budget
	Mode         policy.Mode // of the call, not only of its policy
	StaticMethod bool        // the call has grpc.StaticMethod, as in generated code

	// The attempt's result, in Attempt, Decision and Sent.
	Attempt int           // its number, 1 for the first
	Hedge   bool          // in Attempt: it was sent in parallel with slow attempts
	Elapsed time.Duration // in Attempt; in Decision and Sent after [Event.Slow], since the attempt's start
	Code    codes.Code    // DEADLINE_EXCEEDED also after [Event.Slow], without an Err
	Err     error         // nil after OK, or if the attempt still runs; gRPC's error in Attempt
	Peer    net.Addr      // its backend; nil if it had no connection, or still runs and package elsewhere doesn't know it

	// The decision. If WillRetry is true, another attempt follows after Delay, and Reason is retry or hedge. Otherwise Reason says why no
	// attempt follows. In mode OBSERVE, no attempt follows: the reasons retry and hedge name the attempt that mode ENFORCE would send after
	// Delay. Pushback is a string for logs and metrics. Programs should use Reason.
	WillRetry bool
	Reason    policy.Reason
	Delay     time.Duration
	Pushback  string  // the delay's source: "grpc-retry-pushback-ms", "google.rpc.RetryInfo", "retry-after", "verdict" (a classifier's)
	Answers   Answers // the responses that prevent another attempt, if Reason is ReasonNotProvenFast or ReasonSlowEverywhere

	// ForAnswer says in Decision that all attempts at the target fail, so that the next one isn't sent after Delay, but waits for an answer to
	// another one. Sent follows if it is sent.
	ForAnswer bool

	// SlowAttempt says in Attempt that the attempt took longer than perAttemptTimeout or the hedging delay, or, without either, than a
	// quarter of the call's time. A stream's attempt is measured until its first message. The silence of a server stream isn't slow by a
	// quarter of the call's time, since a watch may be quiet, nor at all with [Resume]. An attempt that no server has seen isn't slow.
	SlowAttempt bool
}

// CallEnd describes a call that has ended, for an [Observer].
type CallEnd struct {
	// The call, as in [Event].
	Method       string
	Target       string
	Budget       string
	Mode         policy.Mode
	StaticMethod bool

	Attempts int           // the attempts sent, hedges included
	Hedges   int           // the attempts sent in parallel with slow ones
	Elapsed  time.Duration // since the call's start
	Waited   time.Duration // the part of Elapsed in which no attempt ran: backoffs, and waits for connections and answers
	Code     codes.Code
	Err      error         // the error that the caller gets, or nil
	Peer     net.Addr      // the backend of the last attempt; nil if it had no connection, and if the first attempt succeeded
	Reason   policy.Reason // why no further attempt followed
	Answers  Answers       // the responses that prevented another attempt, if Reason is ReasonNotProvenFast or ReasonSlowEverywhere

	ForAnswer   bool // the call waited for an answer to another one, as [Event.ForAnswer] says
	SlowAttempt bool // one of its attempts was slow. If Reason is cancelled too, the caller gave up on a slow service
	OuterRetry  bool // the failed call is itself a retry, by go-grpc-middleware around the Retrier (docs/runbook.md)
}

// Answers describes the last responses to a method's attempts, at most ten, if they prevent another attempt. The zero value means that
// there are none.
type Answers struct {
	Known int           // the number of responses
	Slow  int           // the number of these that took too long
	Over  time.Duration // the time from which a response is slow, for an attempt of this call
}

// String returns such a text as "3 of the last 10 responses were slow: over 400ms".
func (a Answers) String() string {
	switch {
	case a.Over == 0:
		return ""
	case a.Slow == 0:
		return fmt.Sprintf("%d of the %d responses that must be known", a.Known, evidence.Enough)
	default:
		return fmt.Sprintf("%d of the last %d responses were slow: over %v", a.Slow, a.Known, a.Over)
	}
}

// answersOf returns the answers because of which no attempt follows, for this reason.
func answersOf(reason policy.Reason, s *evidence.Summary) Answers {
	switch reason {
	case policy.ReasonNotProvenFast:
		return Answers{s.Known, s.Evidence.Slow, s.Fast}
	case policy.ReasonSlowEverywhere:
		return Answers{s.Known, s.VerySlow, s.Limits.Slow}
	default:
		return Answers{}
	}
}

// Slow reports whether the event is about an attempt whose per-attempt timeout or hedging delay has passed, and which may still run. Then
// Code doesn't come from a server.
func (e Event) Slow() bool { return e.Code == codes.DeadlineExceeded && e.Err == nil }
