// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package decision decides what follows a failed or slow attempt of a call.
//
// [Classify] finds what an attempt's [Outcome] means for a policy. The engine then puts everything that matters into one
// [Situation], and [Decide] answers it: whether and when another attempt follows. Each refusal has a
// [policy.Reason]. [Refusal] reads the same value again while the attempt waits. Both are pure: they call nothing, take nothing and start
// nothing, so that the interceptor, explanations and simulations run the same code.
package decision

import (
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// Outcome is the end of an attempt, or the end of its per-attempt timeout or hedging delay.
type Outcome struct {
	Status   *status.Status // of the attempt; DEADLINE_EXCEEDED if TimedOut
	Trailer  metadata.MD
	TimedOut bool // the per-attempt timeout or the hedging delay is over; the attempt itself may still be running
	Origin   Origin
	Final    bool // no other attempt can succeed: the caller is gone, a message is too large
	Resumes  bool // the next attempt resumes a stream that was cut

	// The result of a classifier; without one, the status decides.
	Again bool          // another attempt may succeed, whatever the status, even OK
	Well  bool          // with Again: the server is well, and says "not yet"
	Delay time.Duration // before another attempt, as if the server had asked for it; 0: the server's own, if any
}

// Origin says what has made the result of an attempt. So it says whether a server has seen the attempt, and whether the attempt costs
// anything.
type Origin uint8

// The origins. An attempt of the last two costs nothing.
const (
	FromServer      Origin = iota // gRPC had a stream: a server has seen the attempt, or may have
	FromInterceptor               // an inner interceptor has answered by itself, perhaps with another server's help
	Unseen                        // no server is known to have seen it: gRPC had no stream, or an inner interceptor waited until the context was over
	Unsent                        // it provably never left this client: gRPC had no stream, said UNAVAILABLE, and can't have retried it by itself
)

// Seen reports whether a server has seen the attempt, or may have.
func (o *Outcome) Seen() bool { return o.Origin == FromServer }

// FailsOK reports whether a server has failed with the status OK: a classifier has found the failure in the reply.
func (o *Outcome) FailsOK() bool { return o.Again && !o.Well && o.Status.Code() == codes.OK }

// Situation is everything on which a decision depends: what an attempt brought, what its call has used, what the target has shown, what
// the gates say, and how much time is left.
type Situation struct {
	Policy *policy.Policy
	Class  // of the attempt's outcome; zero for Refusal

	// The call.
	Attempts    int    // sent since the start, or since a resumed stream last received a message
	MaxAttempts int    // including the first
	Committed   Commit // why the application holds on to the attempt; CommitNone if it does not
	Stopped     bool   // the server has forbidden further attempts
	Safe        bool   // the method is idempotent
	Followed    bool   // a later attempt than the one that has ended still runs
	InRetry     bool   // the call is part of an inbound call that is itself a retry
	InSequence  bool   // attempts never run in parallel
	Backoff     Backoff

	// What others say now. They are looked at, and nothing is taken.
	Off      policy.Reason     // why nothing may be sent, whatever the policy: ReasonClosed or ReasonModeOff; "": it may
	Gate     policy.Reason     // the reason of a gate that is closed, such as ReasonBreakerOpen; "": all are open
	Evidence evidence.Evidence // what the method's last answers show

	// The time.
	Left   time.Duration // until the deadline; [NoDeadline]: there is none
	Chance float64       // a random number in [0, 1)

	// The attempt that waits to be sent, for Refusal.
	Waiting     bool          // it is not due, or there is no connection
	Wait        time.Duration // until it is due; negative if it was
	Unconnected bool          // it has waited for a connection as long as it may
}

// inPlace reports whether the next attempt is sent in place of a slow one, and not in parallel with it.
func (s *Situation) inPlace() bool { return s.InSequence || !s.Policy.Parallel() }

// NoDeadline is the time left of a call without a deadline.
const NoDeadline = time.Duration(math.MaxInt64)

// Decision says whether and when another attempt follows.
type Decision struct {
	Retry    bool
	Delay    time.Duration // before the next attempt; 0 if there is none
	Reason   policy.Reason
	Pushback Pushback // Source is "" if there is none
	Commit   Commit   // if Reason is Committed
	Backoff  Backoff  // of the call, once the attempt is sent

	ForAnswer bool // all attempts fail: the attempt isn't sent after Delay, but waits for an answer to another one
}

// Announced reports whether another attempt would follow if the call's mode were not OBSERVE. Reason and Delay are that attempt's.
func (d Decision) Announced() bool {
	return !d.Retry && (d.Reason == policy.ReasonRetry || d.Reason == policy.ReasonHedge)
}

// Refused returns the decision not to send the attempt after all.
func (d Decision) Refused(reason policy.Reason) Decision {
	return Decision{Reason: reason, Pushback: d.Pushback}
}

// Decide decides what follows an attempt. The checks run from top to bottom, and the first one that fails is the reason. Two more
// come after them, since they take something: after a yes, the engine takes a wait slot (too_many_waiting) and asks the budget
// (budget_exhausted, or failing_everywhere while all attempts fail). So a budget is charged only if all else allows the attempt.
func Decide(s *Situation) Decision {
	p := s.Policy
	most, b := s.settings(p)
	no := func(reason policy.Reason) Decision { return Decision{Reason: reason, Pushback: s.Pushback} }
	switch {
	case s.Final, !s.listed() && !s.TimedOut:
		return no(policy.ReasonNonRetryable)
	case s.Committed != CommitNone:
		return Decision{Reason: policy.ReasonCommitted, Commit: s.Committed, Pushback: s.Pushback}
	case s.Attempts >= min(s.MaxAttempts, most):
		return no(policy.ReasonAttemptsExhausted)
	case s.Stopped, Forbids(p, s.Pushback):
		return no(policy.ReasonPushbackStop)
	case !s.Safe && s.Origin != Unsent:
		return no(policy.ReasonNotIdempotent)
	case s.Followed:
		return no(policy.ReasonFollowed)
	case s.InRetry && compiled.Of(p).Extra.Chain == "SUPPRESS": // the upstream caller, who retries, is responsible
		return no(policy.ReasonChainStop)
	case s.Off != "":
		return no(s.Off)
	case s.Gate != "":
		return no(s.Gate)
	case s.Evidence.AlwaysSlow() && s.Origin != Unsent:
		return no(policy.ReasonSlowEverywhere)
	case s.TimedOut && (s.Evidence.OftenSlow() || s.Evidence.Few() && !s.inPlace()):
		return no(policy.ReasonNotProvenFast)
	}
	d := s.next(b)
	if !s.fits(d.Delay) {
		return no(policy.ReasonDeadlineTooClose)
	}
	return d
}

// Refusal returns why an attempt that was decided on is not sent, or no longer waits, or "" if it may. It repeats those checks of Decide
// whose result may have changed.
func Refusal(s *Situation) policy.Reason {
	switch {
	case s.Off != "":
		return s.Off
	case s.Waiting && s.Unconnected:
		return policy.ReasonNotConnected
	case s.Waiting && !s.fits(s.Wait):
		return policy.ReasonDeadlineTooClose
	default:
		return s.Gate
	}
}

// MinAttemptTime is the time before the deadline that an attempt must have. With less, the server's work would be wasted.
const MinAttemptTime = time.Millisecond

// fits reports whether an attempt fits before the deadline after delay.
func (s *Situation) fits(delay time.Duration) bool {
	return s.Left == NoDeadline || s.Left >= MinAttemptTime && s.Left-MinAttemptTime >= delay
}

// Backoff is how far the backoff of a call has grown. The zero value is that of a call without retries.
type Backoff struct {
	Retries  int           // since the start, the last pushback or a resumption
	Previous time.Duration // the wait before the last of them
}

// resumption is the backoff before a hedged stream is resumed.
var resumption = backoff.Config{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}

// atOnceWithin spreads immediate first retries: calls that failed together must not retry in the same instant.
const atOnceWithin = time.Millisecond

// BackoffOf returns the backoff of a policy; for a hedging policy, which only waits for connections, a usual one.
func BackoffOf(p *policy.Policy) backoff.Config {
	if compiled.Of(p).Hedge != nil {
		return resumption
	}
	return compiled.Of(p).Extra.Backoff
}

// Forbids reports whether a pushback prevents further attempts: it says stop, or its delay is longer than the policy allows.
func Forbids(p *policy.Policy, push Pushback) bool { return push.Stop || push.Delay > p.MaxPushback() }

// next returns the decision to send another attempt, with its delay. b is the backoff for the outcome's code.
func (s *Situation) next(b *backoff.Config) Decision {
	p := s.Policy
	d := Decision{Retry: true, Reason: policy.ReasonRetry, Pushback: s.Pushback}
	if !s.InSequence && (compiled.Of(p).Hedge != nil || s.TimedOut && p.Parallel()) {
		d.Reason = policy.ReasonHedge
	}
	if s.Resumes && compiled.Of(p).Hedge != nil {
		b = &resumption // a hedging policy has no backoff, and a cut stream must not be resumed immediately
	}
	if s.Pushback.Source == PushbackTrailer { // instead of the backoff, which starts anew
		d.Delay = s.Pushback.After(s.Chance)
		return d
	}
	if s.atOnce(b) { // the backoff starts with the next retry
		d.Delay = time.Duration(s.Chance * float64(atOnceWithin))
	} else {
		d.Delay = b.Delay(s.Backoff.Retries, s.Backoff.Previous, s.Chance)
		d.Backoff = Backoff{Retries: s.Backoff.Retries + 1, Previous: d.Delay}
	}
	if servers := s.notBefore(b); servers > d.Delay { // the backoff starts anew
		d.Delay = servers
		d.Backoff = Backoff{}
	}
	return d
}

// notBefore returns the delay for a server that says "at least", as RetryInfo and retry-after do: calls that are told the same at the same
// time must not return together. On top of the server's delay goes the jitter of a backoff that is as long, but at most the policy's longest,
// and at most half of the time that is left then. It is never less than that of [Pushback.After].
func (s *Situation) notBefore(b *backoff.Config) time.Duration {
	least := s.Pushback.Delay
	asLong := *b
	asLong.Initial = min(least, b.Max)
	jitter := asLong.Delay(0, 0, s.Chance) - asLong.Delay(0, 0, 0)
	if s.Left != NoDeadline {
		jitter = min(jitter, time.Duration(s.Chance*float64(s.Left-least)/2))
	}
	return max(s.Pushback.After(s.Chance), least+min(jitter, math.MaxInt64-least))
}

// atOnce reports whether this is the first retry, and is sent without a backoff. It never is after RESOURCE_EXHAUSTED, when a
// stream is resumed, or if the code has its own backoff.
func (s *Situation) atOnce(b *backoff.Config) bool {
	p := s.Policy
	return compiled.Of(p).Extra.FirstRetry == "AT_ONCE" && s.Attempts == 1 && !s.Resumes &&
		s.code != codes.ResourceExhausted && b == &compiled.Of(p).Extra.Backoff
}

// Commit is the reason why an attempt is the only one of its call. Metrics, logs and errors print it with
// [policy.ReasonCommitted].
type Commit string

// The reasons to commit a stream. A unary call shows nothing before it ends, so nothing commits it.
const (
	CommitNone            Commit = ""
	CommitMessage         Commit = "message"          // the application has received a message
	CommitHeaders         Commit = "headers"          // it has read them, or SendMsg has found that the attempt has ended with them
	CommitContext         Commit = "context"          // it has asked for the attempt's context
	CommitBufferFull      Commit = "buffer_full"      // a message did not fit into the replay buffer
	CommitPreparedMessage Commit = "prepared_message" // a grpc.PreparedMsg was sent, whose bytes are unknown
	CommitUnsendable      Commit = "unsendable"       // a message could not be sent, nor resent by another attempt
)
