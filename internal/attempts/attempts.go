// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package attempts is the state machine of one call: which of its attempts run, when the next one is sent, which result is the call's,
// and what the budget, the gates (a breaker, admission) and the method are told.
// A [Call] has no lock, goroutine, timer or connection. Its driver reports events, one at a time, with time and chance as
// arguments, and carries out the returned [Step]. Unary calls, streams and the simulator are drivers. After an event the call collects
// what matters into one value, [decision.Decide] alone decides whether another attempt follows, and the call takes what that needs. This
// package alone decides when the attempt is sent, and which result is the call's.
package attempts

import (
	"cmp"
	"errors"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/policy"
)

// Never is a time in the infinite future.
const Never = time.Duration(math.MaxInt64)

// Now is the driver's state when an event happens.
type Now struct {
	At     time.Duration // on the budgets' clock
	Wall   time.Time     // the same moment
	Chance float64       // in [0, 1)
	Down   bool          // the channel is in TRANSIENT_FAILURE
	// Connecting means that the channel is in CONNECTING or IDLE: an attempt that runs may wait for a connection.
	Connecting bool
	Closed     bool          // the channel is closed; the driver then calls Stop
	Outage     time.Duration // how long the channel has been unusable, if Down
	// Off is why no further attempt is sent, whatever the policy: ReasonClosed, ReasonModeOff, or "" if there is no such reason. When it
	// changes, the driver calls Wake.
	Off policy.Reason
}

// Kind is the kind of a call: it says when its attempts are slow.
type Kind uint8

// The kinds.
const (
	Unary  Kind = iota // attempts are timed from their start
	Stream             // of one request: attempts are timed only from Await on
	Upload             // the application sends a stream: neither the per-attempt timeout nor the hedging delay applies
)

// Settings are the settings of a call. Breaker, Admission and Method may be nil.
type Settings struct {
	Policy        *policy.Policy
	MaxAttempts   int           // caps the policy's; 0: none
	Deadline      time.Duration // of the whole call, on the budgets' clock; Never: none
	ByDefault     bool          // Deadline is that of the default timeout, for a call that came without one
	InSequence    bool          // attempts never run in parallel: the next one replaces a slow one, and a hedging policy sends the next one only after a failure
	Kind          Kind          // Unary without one
	ServerStreams bool          // the response is a stream
	Resumes       bool          // and one that is resumed when it is cut: a watch, which may be quiet
	AnnounceOnly  bool          // the first extra attempt that all checks but room and budget allow is announced, and not sent
	Safe          bool          // the method is idempotent
	InRetry       bool          // the call is part of an inbound call that is itself a retry
	Outage        OutageWait
	Budget        budget.Budget
	Slots         Slots
	Breaker       Gate
	Admission     admitting.Gate
	Enforced      bool // admission may refuse the call; else it says that it would
	Method        Method
}

// MaxOutage is the age of an outage at which calls stop waiting for a connection, or for an answer. The wait is meant for restarts:
// DialOptions' delays connect again within 5 s after a restart of 3 s. lab/fleet/reconnect.md has the table behind this choice.
const MaxOutage = 5 * time.Second

// OutageWait says how a call waits in an outage before an extra attempt: for a connection, or, while all attempts fail, for an answer.
type OutageWait struct {
	Longest  time.Duration // 0: it does not wait
	FailFast bool          // while the channel is down, extra attempts are neither sent nor wait
	ByGRPC   bool          // gRPC waits for the connection
}

// Wait is what the pending attempt of a call waits for.
type Wait uint8

// Waits.
const (
	NoWait         Wait = iota
	WaitBackoff         // the end of its backoff, or of a delay that the server has asked for
	WaitConnection      // the channel can't connect
	WaitAnswer          // all attempts fail: an answer to another attempt
)

// Slots limit the calls that wait between two attempts.
type Slots interface {
	TakeSlot(w Wait) bool
	MoveSlot(from, to Wait)
	ReleaseSlot(w Wait)
}

// Gate is asked before every attempt whether it may be sent: a circuit breaker.
type Gate interface {
	// Open returns nil if Allow would let the attempt pass now. It takes nothing: the attempt may never be sent.
	Open(attempt int) error
	// Allow lets the attempt pass, which is sent now, or refuses it. done is then called once, with the attempt's error, which wraps
	// [ErrLocal] if it says nothing of the server.
	Allow(attempt int) (done func(error), err error)
}

// Method is the shared knowledge of the calls of a method at a target. It hears of each answer.
type Method interface {
	Answered(now time.Duration, a evidence.Answer)    // an attempt, at its first message, or at its end
	Outlasted(now time.Duration, least time.Duration) // a slow attempt has lost; its response would have taken longer

	Failed(now time.Duration) // an attempt
	Recovered()               // an attempt was answered, and its latency says nothing; not called with Answered

	Evidence() evidence.Evidence              // what the last answers show
	FailsFor(now time.Duration) time.Duration // since its first failure after its last answer; 0: the last attempt was answered
	AnsweredSince(began time.Duration) bool   // an attempt that began at this time or later was answered
	Quantile() time.Duration                  // of the latency, as the policy asks; 0: unknown
}

// Result is the result of an attempt. Three things say whose it is: Origin, what has made it; ContextEnded, whether it is a response at
// all; and LocalError, what a breaker is told. They answer different questions, and these combinations occur:
//
//	Origin           ContextEnded  LocalError
//	FromServer       no            no, but yes if this client can't send or decode a message
//	FromServer       yes           no
//	FromInterceptor  no            yes
//	Unseen, Unsent   no, yes       yes, but no if the channel has no connection: then the error says that no server is there
type Result struct {
	decision.Outcome // Status nil: OK

	Err          error // as returned by gRPC; nil: OK
	ContextEnded bool  // no response: the error is what this client has made of an ended context, the call's or the attempt's
	LocalError   bool  // the error says nothing of the server: a breaker is told [ErrLocal]

	Progress bool // with Resumes: the application has received a message of this attempt
	Silent   bool // it was cancelled because the server sent nothing for too long
}

func (r *Result) accepted() bool { return r.Err == nil && !r.Again }

// judged returns the error by what it means: a reply may tell a failure, and an error may only say "not yet".
func (r *Result) judged() error {
	switch {
	case r.FailsOK():
		return errFailedReply
	case r.Again && r.Well:
		return nil
	default:
		return r.Err
	}
}

// unused reports whether the attempt costs nothing, since no server is known to have seen it.
func (r *Result) unused() bool { return r.Origin == decision.Unseen || r.Origin == decision.Unsent }

// Step tells the driver what to do after an event: cancel, send, set the timer, notify observers, in this order.
type Step struct {
	Cancel   []int             // cancel these attempts, whose ends must still be reported; valid until the next event
	Send     int               // the number of the attempt to send; 0: none
	Wake     time.Duration     // when to call Wake, replacing any earlier value; Never: only another event changes anything
	Watch    bool              // also call Wake when the channel's state changes
	Slow     bool              // at Wake an attempt is slow
	Over     bool              // nothing runs and everything is settled; see End. True once.
	Decided  int               // the attempt of Decision; 0: no decision
	Decision decision.Decision // with Settings.AnnounceOnly see Decision.Announced
	Answers  evidence.Summary  // on which it was decided
	TimedOut bool              // the decision is on a slow attempt, which may still run
	Took     time.Duration     // if TimedOut, how long it has taken
}

// End is the result of a call.
type End struct {
	Reason   policy.Reason
	Refusal  policy.Reason   // if a default timeout has ended the call: why no attempt followed a slow one; else ""
	Commit   decision.Commit // if Reason is ReasonCommitted
	ResultOf int             // the attempt whose reply, header, trailer and peer are the call's; 0: none
	Err      error           // the call's; nil: OK, or a reply that was to be retried if Reason says why it was not. For a refused call: the breaker's error, or RESOURCE_EXHAUSTED
	Last     error           // the last error of a server, if the end of the call hides it
	Attempts int
	Hedges   int              // those of Attempts that were sent in parallel with others
	Waited   time.Duration    // with no attempt running
	Answers  evidence.Summary // of the last decision
	Pushback time.Duration    // what is left of the delay that the server has asked for; 0: none

	FailsOK     bool // Err is nil, and a classifier has found a failure in the reply
	Forbidden   bool // a server has said that the call is not to be retried, as one says that has given up itself
	WouldRefuse bool // admission would have refused the call, if it were enforced
	ForAnswer   bool // the call has waited for an answer, while all attempts failed
	Slow        bool // an attempt took longer than its own timeout, see [evidence.Limits]
}

// GaveUp reports whether a failed call has given up: it was retried, could not connect, or was not retried to protect the
// backend. An upstream caller must not retry it. A call with one attempt by its policy has not given up, unless the service below says that
// it has, nor has one that leaves retries to the upstream caller ([policy.ReasonChainStop]).
func (e *End) GaveUp() bool {
	switch cmp.Or(e.Refusal, e.Reason) {
	case policy.ReasonPushbackStop, policy.ReasonBreakerOpen, policy.ReasonSlowEverywhere, policy.ReasonNotProvenFast,
		policy.ReasonOverloaded, policy.ReasonDeadlineTooClose, policy.ReasonTooManyWaiting, policy.ReasonFailingEverywhere, policy.ReasonBudgetExhausted,
		policy.ReasonNotConnected:
		return true
	case policy.ReasonAttemptsExhausted, policy.ReasonDeadlineExceeded:
		return e.Attempts > 1 || e.Forbidden
	case policy.ReasonNonRetryable, policy.ReasonCommitted:
		return e.Forbidden && !ofRequest(status.Code(e.Err)) // a handler may go on after NOT_FOUND
	case policy.ReasonSucceeded, policy.ReasonNotIdempotent, policy.ReasonChainStop, policy.ReasonCancelled, policy.ReasonClosed, policy.ReasonModeOff:
		return false
	case policy.ReasonFollowed, policy.ReasonRetry, policy.ReasonHedge: // they end no call
		return false
	}
	return false // each reason has its case, without a default: so the linter names this switch when a reason is added
}

// ErrLocal is interceptor.ErrLocal.
var ErrLocal = errors.New("stagger: an error of this client, which says nothing of the server")

// localError is an error for a breaker.
type localError struct{ err error }

func (e *localError) Error() string   { return e.err.Error() }
func (e *localError) Unwrap() []error { return []error{ErrLocal, e.err} }

var (
	timedOut = status.New(codes.DeadlineExceeded, "per-attempt timeout")
	// errTimedOut is the result of an attempt that was too slow, whatever it returned later.
	errTimedOut = timedOut.Err()
	// errFailedReply stands for a reply with OK in which a classifier has found a failure.
	errFailedReply = status.Error(codes.Unavailable, "a classifier has found a failure in the reply")
	// errOverloaded is the error of a call that admission refuses.
	errOverloaded = status.Error(codes.ResourceExhausted, "admission: the service responds too slowly for this call's deadline")
	// ErrPanicked is the result of an attempt whose call was aborted, for breakers and observers.
	ErrPanicked = status.Error(codes.Unknown, "the attempt has panicked")
)
