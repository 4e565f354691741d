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
	// CallStart is told of every call when it begins. The call has the context that it returns: the given one, or one
	// made of it. Attempts and later events have it too. Call follows, unless an inner interceptor panics.
	CallStart func(context.Context, Event) context.Context
	// Attempt is told of every attempt when it has ended.
	Attempt func(context.Context, Event)
	// Decision is told what follows an attempt that failed, or that has used up its per-attempt
	// timeout and may still be running. It is told why a call ends, too, if that is no such decision: the caller has cancelled
	// it, or its deadline has passed. Attempt is then the last one, or 0 if there was none. In mode OBSERVE, Attempt 0 and
	// [policy.ReasonOverloaded] say that admission would have refused the call. A call that succeeds at once makes no event for it.
	Decision func(context.Context, Event)
	// Sent is told of every extra attempt when it is sent, with the decision that has allowed it: at once, or after the
	// wait. A call may end while it waits, and a budget or the connection may still refuse then.
	Sent func(context.Context, Event)
	// Call is told of every call when it has ended.
	Call func(context.Context, Event)
	// Reload is told of every change of the policies, and of every one that was refused, with why: then the policies from
	// before hold. The set is nil if the file could not be read or has mistakes. The changes are such as "policy
	// /orders/Get changed"; there are none if the file differs in comments or spelling only. It runs in the goroutine that reloads.
	Reload func(set *policy.Set, changes []string, err error)
	// Mode is told of every change by [Retrier.Switch], of one service or of all, in the goroutine that
	// makes it. Without any Mode function, changes go to [slog.Default].
	Mode func(from, to Switch)
	// Diagnostic is told what is wrong, may surprise or is worth knowing, by its severity. Warnings and notes about the policies
	// come when the Retrier is made and at each reload; a warning comes once for each misuse that only calls can show, the first
	// thousand; a note when a pool answers again. An error says that the file that [Watch] follows is refused, and one more
	// each mistake in it. Without any Diagnostic function, all this goes to [slog.Default].
	Diagnostic func(policy.Diagnostic)
}

// Event is what an [Observer] is told of a call, or of one of its attempts. A field that a function does not name has
// its zero value there.
type Event struct {
	// The call, in all events.
	Method       string
	Target       string      // of the ClientConn, in the form of its CanonicalTarget
	Budget       string      // that the policy names; "" is the default budget
	Mode         policy.Mode // of the call, and not only of its policy: one that a percentage leaves out is OFF
	StaticMethod bool        // the call has grpc.StaticMethod, as those of generated code have

	// What has ended, or is slow: an attempt in Attempt, Decision and Sent, the call in Call.
	Attempt int           // the attempt's number, 1 for the first; in Call, how many were sent
	Hedges  int           // in Attempt, 1 if it was sent beside others, which had not answered in time; in Call, how many such there were
	Elapsed time.Duration // in Attempt and Call
	Code    codes.Code    // DEADLINE_EXCEEDED without an Err: the per-attempt timeout or hedging delay is over, and the attempt may still run
	Err     error         // nil after OK, or if the attempt still runs; in Attempt as gRPC returned it, in Call as the caller gets it
	Peer    net.Addr      // the attempt's backend; nil if it did not reach a connection, or still runs
	// Place is, in Attempt, how it came out beside others: "won", its answer is the call's; "lost", it failed, or answered
	// when another had won; "cancelled", since another had won, or the call had ended; "abandoned", it was slow, and another
	// attempt has taken its place. It is "" if no other attempt ran, nor took its place.
	Place string

	// What follows. Retry says that another attempt does, after Delay, for Reason; else Reason is why none does. In mode
	// OBSERVE none follows: the reasons retry and hedge say which would, after Delay, but for the mode.
	Retry      bool
	Reason     policy.Reason
	Delay      time.Duration // in Call, of all its waits together, with no attempt running
	Pushback   string        // what the server has named a delay in, or forbidden retries: "grpc-retry-pushback-ms", "google.rpc.RetryInfo", "retry-after"
	OuterRetry bool          // in Call: a loop or an interceptor outside of the Retrier has made the call again (docs/loops.md)
}
