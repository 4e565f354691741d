// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package decision says what follows an attempt of a call that failed, or that is slow.
//
// [Compile] turns the policies of a program into what [Policy.Decide] asks, step by step: whether another attempt follows
// an [Outcome], and when. Each refusal has a name, its [policy.Reason]. Whether an attempt may still be sent when its wait
// is over says [Refusal]. Both take time and chance as arguments and start nothing, so that the interceptor, an
// explanation and a simulation run the same code. How much extra load is allowed is not decided here: see package budget.
package decision

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// Call is how far a call has come. It belongs to one call and is not safe for concurrent use.
type Call struct {
	Deadline    time.Time // of the whole call; zero: none
	Attempts    int       // sent so far
	MaxAttempts int       // a cap over the policy's own; 0: none
	Safe        bool      // declared safe to repeat
	Committed   Commit    // what made the running attempt the only one
	InPlace     bool      // its attempts never run beside each other
	Followed    bool      // another attempt was sent after the one that has ended, and still runs
	InRetry     bool      // made inside of an incoming call that is itself a retry
	Stopped     bool      // the server has forbidden further attempts

	retries  int           // since the start or the last pushback
	previous time.Duration // the wait before the last of them
}

// Sent records that the attempt which d allowed has been sent.
func (c *Call) Sent(d Decision) {
	c.Attempts++
	c.retries, c.previous = d.retries, d.previous
}

// Progress starts the allowance anew with the attempt that runs: a resumed stream has brought a message. With
// reset the backoff begins anew, too.
func (c *Call) Progress(reset bool) {
	c.Attempts = 1
	if reset {
		c.retries, c.previous = 0, 0
	}
}

// Outcome is how an attempt ended, or that it has used up its per-attempt timeout or the hedging delay.
type Outcome struct {
	Status   *status.Status // of the attempt; DEADLINE_EXCEEDED if TimedOut
	Header   metadata.MD    // nil if none arrived (Trailers-Only), or nobody looked
	Trailer  metadata.MD
	TimedOut bool // the per-attempt timeout or the hedging delay is over; the attempt itself may still be running
	Unsent   bool // the attempt provably never left this client
	Bare     bool // it has ended with a status and nothing else: no headers, no message, and gRPC has made no other for it
	Refused  bool // the server, or a classifier, says that it has not worked on the attempt; it is believed if Bare
	Final    bool // no other attempt can end better: the caller is gone, a message is too large
	Resumes  bool // the next attempt asks for the rest of a stream that was cut

	// A classifier's word; without one, the status decides.
	Again bool       // another attempt may end better, whatever the status, OK too
	As    codes.Code // the code that it counts as, whatever the policy's overrides say; OK: the status's own
}

// Decision is what follows an attempt.
type Decision struct {
	Retry    bool
	Delay    time.Duration // before the next attempt; 0 if there is none
	Reason   policy.Reason
	Pushback Pushback // the server's word, if it said one
	Commit   Commit   // with the reason Committed

	retries  int
	previous time.Duration
}

// Shadow reports whether another attempt would have followed, and does not since the call's mode is OBSERVE: Reason and
// Delay say which.
func (d Decision) Shadow() bool {
	return !d.Retry && (d.Reason == policy.ReasonRetry || d.Reason == policy.ReasonHedge)
}

// Decide says what follows an attempt of c whose outcome is of a class: the whole of it, read from top to
// bottom. The budget comes last, so that it is charged only when every other answer is yes, and
// before the wait, so that a refusal adds no latency. r is a chance in [0, 1).
func (p *Policy) Decide(c *Call, is Class, g Gates, now time.Time, r float64) Decision {
	var (
		listed          = is.listed()
		limit, bo, cost = p.with(is.own)
	)
	// A failure counts whether or not it is retried, the last one too (gRFC A6; D15, D16).
	if is.failed() && (listed || is.Pushback.Stop) {
		g.Fail()
	}
	no := func(reason policy.Reason) Decision { return Decision{Reason: reason, Pushback: is.Pushback} }
	switch commit := p.committed(c, is); {
	case is.Final, !listed && !is.TimedOut:
		return no(policy.ReasonNonRetryable)
	case commit != CommitNone:
		return Decision{Reason: policy.ReasonCommitted, Commit: commit, Pushback: is.Pushback}
	case c.exhausted(limit):
		return no(policy.ReasonAttemptsExhausted)
	case !c.Safe && is.Worked():
		return no(policy.ReasonNotIdempotent)
	case c.Stopped, p.Forbids(is.Pushback):
		return no(policy.ReasonPushbackStop)
	case c.Followed:
		return no(policy.ReasonFollowed)
	case p.leavesTo(c):
		return no(policy.ReasonChainStop)
	case g.Off() != "":
		return no(g.Off())
	case g.Open():
		return no(policy.ReasonBreakerOpen)
	case is.TimedOut && g.LatencyUnknown():
		return no(policy.ReasonLatencyUnknown)
	case !is.Unsent && g.SlowEverywhere(is.Outcome):
		return no(policy.ReasonSlowEverywhere)
	case g.Overloaded():
		return no(policy.ReasonOverloaded)
	}
	if is.Resumes && p.spec.Hedge != nil {
		bo = &resumption // a hedging policy has no backoff, and a cut stream must not come back at once
	}
	d := c.next(is.Pushback, bo, p.atOnce(c, is, bo), r)
	if !c.InPlace && (p.spec.Hedge != nil || is.TimedOut && p.Parallel()) {
		d.Reason = policy.ReasonHedge
	}
	switch {
	case !c.fits(d.Delay, p.retry.MinAttemptTime, now):
		return no(policy.ReasonDeadlineTooClose)
	case d.Delay > 0 && !g.Enter():
		return no(policy.ReasonTooManyWaiting)
	case !g.Withdraw(is.Outcome, cost):
		g.Leave()
		return no(policy.ReasonBudgetExhausted)
	}
	return d
}

// exhausted reports whether the call has had as many attempts as the policy's limit and its own allow.
func (c *Call) exhausted(limit int) bool {
	return c.Attempts >= limit || c.MaxAttempts > 0 && c.Attempts >= c.MaxAttempts
}

// Phase is how far an attempt has come that is to be sent.
type Phase uint8

// The phases. All but the first are of an attempt that [Policy.Decide] has allowed.
const (
	PhaseFirst     Phase = iota // the first attempt of a call
	PhaseWaiting                // it is not due yet, or there is no connection
	PhaseReplacing              // it is due, and another attempt would have to end for it
	PhaseReplaced               // the other has been told to end
	PhaseSending                // it is due
)

// Refusal says why an attempt is not sent, or does not wait any longer; "" if it is, or does. What Decide has answered
// with yes is not asked again, but for what may have changed meanwhile.
func Refusal(phase Phase, d Departure) policy.Reason {
	var (
		first   = phase == PhaseFirst
		waiting = phase == PhaseWaiting
		due     = phase == PhaseReplacing || phase == PhaseSending
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
	case waiting && !d.Enter():
		return policy.ReasonTooManyWaiting
	case due && !d.Confirm():
		return policy.ReasonBudgetExhausted
	case phase == PhaseReplacing && d.Open(), (first || phase == PhaseSending) && !d.Allow():
		return policy.ReasonBreakerOpen
	default:
		return ""
	}
}

// committed is what has committed the call to its attempt.
func (p *Policy) committed(c *Call, is Class) Commit {
	if c.Committed == CommitNone && p.CommitsOnHeaders() && is.Header != nil {
		return CommitHeaders
	}
	return c.Committed
}

// leavesTo reports whether the retry is left to the caller further up, whose retry c is part of.
func (p *Policy) leavesTo(c *Call) bool {
	switch p.retry.Chain {
	case policy.ChainSuppress:
		return c.InRetry
	case policy.ChainOnce:
		return c.InRetry && c.Attempts > 1
	default:
		return false
	}
}

// fits reports whether an attempt of the given length fits before the deadline after delay.
func (c *Call) fits(delay, attempt time.Duration, now time.Time) bool {
	if c.Deadline.IsZero() {
		return true
	}
	left := c.Deadline.Sub(now)
	return left >= attempt && left-attempt >= delay
}

// resumption is the backoff before the rest of a hedged stream is asked for.
var resumption = policy.DefaultRetry().Backoff

// atOnceWithin spreads first retries that are sent at once: calls that failed together do not come back in one instant.
const atOnceWithin = time.Millisecond

// atOnce reports whether the retry is the first, and need not wait for its backoff. Who has too much to do is not asked
// again at once, nor is a backend that many streams were cut from; and a code with a backoff of its own keeps that.
func (p *Policy) atOnce(c *Call, is Class, b *policy.Backoff) bool {
	return p.retry.FirstRetryAtOnce && c.Attempts == 1 && !is.Resumes &&
		is.code != codes.ResourceExhausted && b == &p.retry.Backoff
}

// next is the decision to retry, with its delay.
func (c *Call) next(push Pushback, b *policy.Backoff, atOnce bool, r float64) Decision {
	d := Decision{Retry: true, Reason: policy.ReasonRetry, Pushback: push}
	if push.Source != "" {
		d.Delay = push.After(r)
		return d // and the progression starts again
	}
	if atOnce {
		d.Delay = time.Duration(r * float64(atOnceWithin))
		return d // and the progression starts with the next retry
	}
	d.Delay = b.Delay(c.retries, c.previous, r)
	d.retries, d.previous = c.retries+1, d.Delay
	return d
}

// Commit is what made an attempt the only one of its call. Metrics, logs and errors print it beside
// [policy.ReasonCommitted].
type Commit string

// What commits. A unary call shows nothing before it ends, so that only headers can commit it, by a
// policy with commitOn HEADERS.
const (
	CommitNone            Commit = ""
	CommitMessage         Commit = "message"          // the application has received one
	CommitHeaders         Commit = "headers"          // it has seen them, or the policy says commitOn HEADERS
	CommitContext         Commit = "context"          // it has asked for the attempt's context
	CommitBufferFull      Commit = "buffer_full"      // a message did not fit into the replay buffer
	CommitPreparedMessage Commit = "prepared_message" // a grpc.PreparedMsg, whose bytes nobody knows, was sent
	CommitUnsendable      Commit = "unsendable"       // a message could not be sent, and could not be by another attempt
)

// Step is one question of [Policy.Decide].
type Step struct {
	Question string
	No       policy.Reason // what ends the call if the answer is no
}

// Steps are the questions, in the order in which they are asked.
func Steps() []Step {
	return []Step{
		{"May another attempt help after this outcome?", policy.ReasonNonRetryable},
		{"Has the application seen no part of the attempt?", policy.ReasonCommitted},
		{"Is an attempt left?", policy.ReasonAttemptsExhausted},
		{"Is the method idempotent?", policy.ReasonNotIdempotent},
		{"Does the server allow it, with a delay of at most maxPushback?", policy.ReasonPushbackStop},
		{"Has the newest attempt failed?", policy.ReasonFollowed},
		{"Is no upstream caller retrying this request?", policy.ReasonChainStop},
		{"Is the circuit closed?", policy.ReasonBreakerOpen},
		{"Is the method's usual latency known, before it is hedged?", policy.ReasonLatencyUnknown},
		{"Were the last answers to all calls of the method fast?", policy.ReasonSlowEverywhere},
		{"Does admission expect an answer before the deadline?", policy.ReasonOverloaded},
		{"Do delay and attempt fit before the deadline?", policy.ReasonDeadlineTooClose},
		{"Is there room for another waiting call?", policy.ReasonTooManyWaiting},
		{"Has the traffic earned another attempt?", policy.ReasonBudgetExhausted},
	}
}
