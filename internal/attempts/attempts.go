// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package attempts is the life of one call as a pure state machine: which of its attempts run, when the next
// one is sent and beside what, whose answer counts, and who is told what it cost.
//
// A [Call] has no lock, goroutine, timer or connection. Its driver reports events, one at a time, with time
// and chance as arguments, and does what the returned [Step] says. Unary calls, streams and the simulator are
// its drivers. Whether an attempt follows another is decided by [decision.Policy.Decide] alone; when it is sent,
// and whose answer counts, is decided here alone.
package attempts

import (
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// Never is a time that does not come.
const Never = time.Duration(math.MaxInt64)

// Now is what the driver sees when an event happens.
type Now struct {
	At     time.Duration // on the budgets' clock
	Wall   time.Time     // the same moment
	Chance float64       // in [0, 1)
	Down   bool          // the channel is in TRANSIENT_FAILURE
	Outage time.Duration // how long it has not been usable, if it is Down
}

// Settings are what a call starts with. Breaker and Method may be nil.
type Settings struct {
	Policy      *decision.Policy
	MaxAttempts int           // a cap over the policy's; 0: none
	Deadline    time.Duration // of the whole call, on the budgets' clock; Never: none
	Wall        time.Time     // the same deadline; zero: none
	ConnectWait time.Duration // the longest wait for a connection before an extra attempt; 0: none
	MaxOutage   time.Duration // that the channel has not been usable when nobody waits for it any more; 0: it does not matter
	FailFast    bool          // while the channel is down, no extra attempt is sent, nor waits
	Alone       bool          // attempts never run beside each other: a slow one makes way for the next, and a hedging policy sends that after a failure alone
	Uploads     bool          // an attempt is answered by a server only once Requested has said that it has the whole request
	Observe     bool          // the first extra attempt is decided on, and not sent: Budget is a shadow, and no slot is taken
	Facts       Facts
	Budget      balance.Budget
	Slots       Slots
	Breaker     Breaker
	Method      Method
}

// Facts are asked when a decision needs them.
type Facts interface {
	Safe() bool    // the call may be repeated
	InRetry() bool // the call is made inside of an incoming call that is itself a retry
	// Off is why no other attempt is sent from now on, whatever the policy says: ReasonClosed, ReasonModeOff; "" if it
	// may be. When that changes, the driver calls Wake.
	Off() policy.Reason
}

// Slots bound the calls that wait between two attempts.
type Slots interface {
	Enter() bool
	Leave()
}

// Breaker is asked for leave before every attempt; done is then called once, with the attempt's error.
type Breaker interface {
	Open() bool
	Allow() (done func(error), err error)
}

// Method is what the calls of a method at a target have learned together. It hears of every attempt: that it is sent, by
// Admit or Sent, and then once that it was answered or left. What decides by the last answers of all is asked here.
type Method interface {
	Admit(now, left time.Duration) (running int)     // the first attempt of a call that has so much time (Never: no deadline); how many run with it; 0: it may not be made
	Sent(now time.Duration) (running int)            // an extra attempt; how many run with it
	Answered(now time.Duration, a Answer)            // by its first message, or by its end
	Left(now time.Duration, l Lost)                  // an attempt that has ended otherwise, or is of no use any more
	Reported(now time.Duration, utilization float64) // by a server, at an attempt's end

	Queued(now, left time.Duration) bool            // an extra attempt could not be answered in time
	LastAnswers(now time.Duration) (slow, long int) // how many of the last five were slow, and long
	Usual() (median, quantile time.Duration)        // of how long answers take; the quantile is the policy's; 0: not known
}

// Answer is how an attempt was answered.
type Answer struct {
	Took     time.Duration
	Left     time.Duration // what the call had left when the attempt began: the answer is long if it took much of that; Never: no deadline
	Running  int           // attempts when it was sent, as Admit or Sent has said
	Limit    time.Duration // it was slow if it took longer; 0: nothing is
	Accepted bool          // it is what a call wants: no error, nor a reply that means "not yet"
}

// Lost is how an attempt has ended without an answer that says how long the service takes.
type Lost struct {
	Left    time.Duration // what the call had left when the attempt began; Never: no deadline
	AtLeast time.Duration // not 0: an answer would have taken longer
	Why     Why
}

// Why is why an attempt is lost.
type Why uint8

// The reasons.
const (
	LostOther    Why = iota // it says nothing of the service
	LostAnswered            // it was answered, but how long that took is the application's business
	LostDeadline            // the call's deadline has passed, and it was the first attempt
	LostFull                // the server has no resources for it
	LostRefused             // the server has refused to work on it
)

// Result is how an attempt ended.
type Result struct {
	decision.Outcome // Status nil: OK

	Err      error // as gRPC returned it; nil: OK
	Local    bool  // no answer, but what gRPC makes of a context that is over
	Panicked bool  // an interceptor below has panicked
	// Utilization is what the server has reported of itself: 1 is all that it can do; 0: it has not.
	Utilization float64

	Progress bool // with Resumes: the application has received a message of it
}

func (r *Result) accepted() bool { return r.Err == nil && !r.Again && r.As == codes.OK }

// Place is how an attempt came out beside others.
type Place string

// The places.
const (
	PlaceAlone     Place = ""          // no other attempt ran beside it, nor took its place
	PlaceWon       Place = "won"       // its answer is the call's
	PlaceLost      Place = "lost"      // it failed, or answered when another had won
	PlaceCancelled Place = "cancelled" // it was cancelled since another had won, or the call had ended
	PlaceAbandoned Place = "abandoned" // it was slow, and another attempt has taken its place
)

// Step is what the driver does after an event: cancel, send, set the timer, notify observers, in this order.
type Step struct {
	Cancel   []int             // attempts, whose ends are reported as all others; valid until the next event
	Send     int               // the number of the attempt to send; 0: none
	Wake     time.Duration     // when to call Wake, in place of any time given before; Never: only another event changes anything
	Watch    bool              // call Wake also when the channel's state changes
	Slow     bool              // at Wake an attempt is slow: nobody need call it while no call of the application waits, see Call.Paused
	Over     bool              // nothing runs and all is settled; End says how. True once.
	Place    Place             // of the attempt that the event has ended
	Decided  int               // the attempt that Decision is about; 0: nothing was decided
	Decision decision.Decision // with Settings.Observe see Decision.Shadow
	TimedOut bool              // the decision is about an attempt that is slow, and may still run
}

// End is how a call ended.
type End struct {
	Reason   policy.Reason
	Commit   decision.Commit // with ReasonCommitted
	Answer   int             // whose reply, header, trailer and peer the call has; 0: nobody's
	Err      error           // of the answer; nil: OK, or "not yet" when Reason says why no attempt followed. Of a refused call: the breaker's, or RESOURCE_EXHAUSTED
	Last     error           // the last that a server said, if the end of the call hides that
	Attempts int
	Hedges   int           // of the attempts, those that were sent beside others
	Waited   time.Duration // with no attempt running
	// RetryAfter is how long to wait before the call, which has failed, is made again; 0: it must not be.
	RetryAfter time.Duration
	Panicked   bool // Answer is an attempt that has panicked; the driver panics on
}

// GaveUp reports whether a call that has failed has given up: it was retried, could not connect, or was kept from that by
// what protects the backend. A caller above must not begin anew then. A call that has one attempt by its policy has not
// given up, nor has one that has left its retries to the caller above ([policy.ReasonChainStop]).
func (e *End) GaveUp() bool {
	switch e.Reason {
	case policy.ReasonPushbackStop, policy.ReasonBreakerOpen, policy.ReasonLatencyUnknown, policy.ReasonSlowEverywhere, policy.ReasonOverloaded,
		policy.ReasonDeadlineTooClose, policy.ReasonTooManyWaiting, policy.ReasonBudgetExhausted, policy.ReasonNotConnected:
		return true
	case policy.ReasonAttemptsExhausted, policy.ReasonDeadlineExceeded:
		return e.Attempts > 1
	default:
		return false
	}
}

var (
	timedOut = status.New(codes.DeadlineExceeded, "per-attempt timeout")
	// errTimedOut is how an attempt ended that was too slow, whatever became of it.
	errTimedOut = timedOut.Err()
	// errOverloaded is the end of a call that is not admitted.
	errOverloaded = status.Error(codes.ResourceExhausted, "admission: the service answers too slowly to answer this call before its deadline")
	// errPanicked is what a breaker is told of an attempt that has panicked.
	errPanicked = status.Error(codes.Unknown, "the attempt has panicked")
)
