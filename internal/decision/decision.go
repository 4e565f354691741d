// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package decision decides what follows a failed or slow attempt of a call.
//
// [Compile] compiles a program's policies. [Policy.Decide] runs their checks in order, and decides whether and when another
// attempt follows an [Outcome]. Each refusal has a [policy.Reason]. [Refusal] decides whether the attempt may still be sent
// when its wait is over. Both take time and chance as arguments and start nothing, so that the interceptor, explanations and
// simulations run the same code. Package budget decides how much extra load is allowed.
package decision

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// Call is the progress of a call. It belongs to one call and is not safe for concurrent use.
type Call struct {
	Deadline    time.Time // of the whole call; zero: none
	Attempts    int       // sent so far
	MaxAttempts int       // a cap on the policy's maxAttempts; 0: none
	Safe        bool      // the method is idempotent
	Committed   Commit    // the reason why the running attempt is the only one
	InPlace     bool      // its attempts never run in parallel
	Followed    bool      // a later attempt than the one that has ended still runs
	InRetry     bool      // part of an inbound call that is itself a retry
	Stopped     bool      // the server has forbidden further attempts

	retries  int           // since the start or the last pushback
	previous time.Duration // the wait before the last of them
}

// Sent records that the attempt of d was sent.
func (c *Call) Sent(d Decision) {
	c.Attempts++
	c.retries, c.previous = d.retries, d.previous
}

// Progress resets the attempts to the running one, because a resumed stream has received a message. If reset is true, the
// backoff also restarts.
func (c *Call) Progress(reset bool) {
	c.Attempts = 1
	if reset {
		c.retries, c.previous = 0, 0
	}
}

// Outcome is the end of an attempt, or the end of its per-attempt timeout or hedging delay.
type Outcome struct {
	Status   *status.Status // of the attempt; DEADLINE_EXCEEDED if TimedOut
	Trailer  metadata.MD
	TimedOut bool // the per-attempt timeout or the hedging delay is over; the attempt itself may still be running
	Unsent   bool // the attempt provably never left this client
	Foreign  bool // no server is known to have seen it: an inner interceptor has made the result, or gRPC, before it had a stream
	Final    bool // no other attempt can succeed: the caller is gone, a message is too large
	Resumes  bool // the next attempt resumes a stream that was cut

	// The result of a classifier; without one, the status decides.
	Again bool // another attempt may succeed, whatever the status, even OK
}

// Decision says whether and when another attempt follows.
type Decision struct {
	Retry    bool
	Delay    time.Duration // before the next attempt; 0 if there is none
	Reason   policy.Reason
	Pushback Pushback // Source is "" if there is none
	Commit   Commit   // if Reason is Committed

	retries  int
	previous time.Duration
}

// Shadow reports whether another attempt would follow if the call's mode were not OBSERVE. Reason and Delay are that attempt's.
func (d Decision) Shadow() bool {
	return !d.Retry && (d.Reason == policy.ReasonRetry || d.Reason == policy.ReasonHedge)
}

// Decide decides what follows an attempt of c. The checks run from top to bottom. The budget is last, so that it is charged
// only if all other checks pass, and it is asked before the wait, so that a refusal adds no latency. r is a random number in
// [0, 1).
func (p *Policy) Decide(c *Call, is Class, g Gates, now time.Time, r float64) Decision {
	var (
		listed    = is.listed()
		limit, bo = p.with(is.own)
	)
	// Every failure of a server counts, even the last one or one that is not retried (gRFC A6).
	if is.failed() && (listed || is.Pushback.Stop) {
		g.Fail()
	}
	no := func(reason policy.Reason) Decision { return Decision{Reason: reason, Pushback: is.Pushback} }
	switch {
	case is.Final, !listed && !is.TimedOut:
		return no(policy.ReasonNonRetryable)
	case c.Committed != CommitNone:
		return Decision{Reason: policy.ReasonCommitted, Commit: c.Committed, Pushback: is.Pushback}
	case c.exhausted(limit):
		return no(policy.ReasonAttemptsExhausted)
	case c.Stopped, p.Forbids(is.Pushback):
		return no(policy.ReasonPushbackStop)
	case !c.Safe && !is.Unsent:
		return no(policy.ReasonNotIdempotent)
	case c.Followed:
		return no(policy.ReasonFollowed)
	case p.leavesTo(c):
		return no(policy.ReasonChainStop)
	case g.Off() != "":
		return no(g.Off())
	case g.Open():
		return no(policy.ReasonBreakerOpen)
	case !is.Unsent && g.SlowEverywhere():
		return no(policy.ReasonSlowEverywhere)
	case is.TimedOut && !g.ProvenFast():
		return no(policy.ReasonNotProvenFast)
	case g.Overloaded():
		return no(policy.ReasonOverloaded)
	}
	if is.Resumes && p.spec.Hedge != nil {
		bo = &resumption // a hedging policy has no backoff, and a cut stream must not be resumed immediately
	}
	d := c.next(is.Pushback, bo, p.atOnce(c, is, bo), r)
	if !c.InPlace && (p.spec.Hedge != nil || is.TimedOut && p.Parallel()) {
		d.Reason = policy.ReasonHedge
	}
	switch {
	case !c.fits(d.Delay, now):
		return no(policy.ReasonDeadlineTooClose)
	case d.Delay > 0 && !g.TakeSlot():
		return no(policy.ReasonTooManyWaiting)
	case !g.AllowExtra(is.Outcome):
		g.ReleaseSlot()
		return no(policy.ReasonBudgetExhausted)
	}
	return d
}

// exhausted reports whether the call has used all attempts that the policy, or a limit of the call, allows.
func (c *Call) exhausted(limit int) bool {
	return c.Attempts >= limit || c.MaxAttempts > 0 && c.Attempts >= c.MaxAttempts
}

// Phase is the progress of an attempt that is to be sent.
type Phase uint8

// The phases. All but the first are for an attempt that [Policy.Decide] has allowed.
const (
	PhaseFirst     Phase = iota // the first attempt of a call
	PhaseWaiting                // it is not due yet, or there is no connection
	PhaseReplacing              // it is due, and another attempt would have to end for it
	PhaseReplaced               // the other attempt was told to end
	PhaseSending                // it is due
)

// Refusal returns the reason why an attempt is not sent, or no longer waits, or "" if it may. It repeats only those checks of
// Decide whose result may have changed.
func Refusal(phase Phase, d Departure) policy.Reason {
	var (
		first   = phase == PhaseFirst
		waiting = phase == PhaseWaiting
	)
	switch {
	case first && !d.Admit():
		return policy.ReasonOverloaded
	case !first && d.Off() != "":
		return d.Off()
	case waiting && d.NotConnected():
		return policy.ReasonNotConnected
	case waiting && d.TooLate():
		return policy.ReasonDeadlineTooClose
	case waiting && !d.TakeSlot():
		return policy.ReasonTooManyWaiting
	case phase == PhaseReplacing && d.Open(), (first || phase == PhaseSending) && !d.Allow():
		return policy.ReasonBreakerOpen
	default:
		return ""
	}
}

// leavesTo reports whether an upstream caller, whose retry c is part of, is responsible for retrying.
func (p *Policy) leavesTo(c *Call) bool {
	return c.InRetry && p.retry.Chain == "SUPPRESS"
}

// MinAttemptTime is the time before the deadline that an attempt must have. With less, the server's work would be wasted.
const MinAttemptTime = time.Millisecond

// fits reports whether an attempt fits before the deadline after delay.
func (c *Call) fits(delay time.Duration, now time.Time) bool {
	if c.Deadline.IsZero() {
		return true
	}
	left := c.Deadline.Sub(now)
	return left >= MinAttemptTime && left-MinAttemptTime >= delay
}

// resumption is the backoff before a hedged stream is resumed.
var resumption = policy.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}

// atOnceWithin spreads immediate first retries: calls that failed together must not retry in the same instant.
const atOnceWithin = time.Millisecond

// atOnce reports whether this is the first retry, and is sent without a backoff. It never is after RESOURCE_EXHAUSTED, when a
// stream is resumed, or if the code has its own backoff.
func (p *Policy) atOnce(c *Call, is Class, b *policy.Backoff) bool {
	return p.retry.FirstRetry == "AT_ONCE" && c.Attempts == 1 && !is.Resumes &&
		is.code != codes.ResourceExhausted && b == &p.retry.Backoff
}

// next returns the decision to retry, with its delay.
func (c *Call) next(push Pushback, b *policy.Backoff, atOnce bool, r float64) Decision {
	d := Decision{Retry: true, Reason: policy.ReasonRetry, Pushback: push}
	if push.Source != "" {
		d.Delay = push.After(r)
		return d // the progression restarts
	}
	if atOnce {
		d.Delay = time.Duration(r * float64(atOnceWithin))
		return d // the progression starts with the next retry
	}
	d.Delay = Delay(*b, c.retries, c.previous, r)
	d.retries, d.previous = c.retries+1, d.Delay
	return d
}

// Commit is the reason why an attempt is the only one of its call. Metrics, logs and errors print it with
// [policy.ReasonCommitted].
type Commit string

// The reasons to commit a stream. A unary call shows nothing before it ends, so nothing commits it.
const (
	CommitNone            Commit = ""
	CommitMessage         Commit = "message"          // the application has received a message
	CommitHeaders         Commit = "headers"          // it has read them
	CommitContext         Commit = "context"          // it has asked for the attempt's context
	CommitBufferFull      Commit = "buffer_full"      // a message did not fit into the replay buffer
	CommitPreparedMessage Commit = "prepared_message" // a grpc.PreparedMsg was sent, whose bytes are unknown
	CommitUnsendable      Commit = "unsendable"       // a message could not be sent, nor resent by another attempt
)
