// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the extra load that retries and hedges put on a service.
//
// A maximum of four attempts is right for a lost packet. If the service is down, it means four times the load, which can keep
// the service down. A call can't tell these cases apart, but the traffic as a whole does. So all calls to a backend share a
// budget: calls earn extra attempts, and extra attempts spend the earnings. While few calls fail, the budget pays for all their
// retries; when most fail, the load grows by the agreed share instead of a multiple. docs/overload.md has more.
//
// Write budgets in the policy file. A program needs this package only for policies in Go, or to share a budget among Retriers
// (interceptor.WithBudget): [New] returns the budget of a config.
//
//	config              bounds                                     after                       choose it for
//	[RatioConfig]       extra attempts, by traffic                 Finagle, Linkerd, AWS SDKs  nearly everything
//	[ThrottleConfig]    extra attempts, by successes and failures  gRPC's retryThrottling      a file shared with other gRPC clients
//	[ConcurrentConfig]  extra attempts in flight                   Envoy                       few and long calls
//
// For another rule, implement [Budget]: its example grants five extra attempts a minute.
package budget

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// Budget is shared by calls. Its methods must be safe for concurrent use, and must not wait. They run under the lock of a call,
// so they must not use the Retrier or make calls.
//
// A Retrier reports the events of its calls, and asks before each attempt except the first:
//
//	EventCallStarted ─► attempt ─┬─► OK ──────────────────────────────────────► EventCall…
//	                             └─► EventAttemptFailed ─► Withdraw ─┬─► false ► EventCall…
//	                                                                 └─► true ─► Settle or Return
//
// All times of a budget are of one monotonic clock: compare them only with each other. They may lag slightly, because different
// goroutines read them, and a call that succeeds at once ends with the time of its start.
type Budget interface {
	// Observe reports an event of a call. Ignore events that you don't know.
	Observe(now time.Time, e Event)
	// Withdraw asks for one extra attempt. Reading the balance, deciding and charging must be one step, so that two calls never
	// get the same last token.
	Withdraw(now time.Time, c Charge) (Permit, bool)
	// Settle reports that the extra attempt for which p was granted has ended, and whether it helped: it succeeded within the usual
	// time of an attempt. Settle or Return is called once for each permit, and before the call ends.
	Settle(now time.Time, p Permit, helped bool)
	// Return returns the permit of an extra attempt that was never sent, with its charge.
	Return(now time.Time, p Permit)
	// State returns a reading for people and metrics. Deciding by it before a withdrawal is a race.
	State(now time.Time) State
}

// Event is an event of a call.
type Event uint8

// The events. A call reports EventCallStarted once, and later exactly one of its ends.
const (
	EventCallStarted   Event = iota + 1 // the first attempt is always free
	EventAttemptFailed                  // an attempt, including the first, ended in a failure that counts against the server
	EventCallSucceeded                  // a call ended with OK, without extra attempts
	EventCallRecovered                  // a call ended with OK, after extra attempts were sent
	EventCallFailed                     // a call ended with another status
)

// Charge says what an extra attempt is worth: its Kind; a Factor of the cost of the kind, more than 0 and at most 100 (any other
// value counts as 1); and with EarnedOnly, that no reserve may pay (MinPerSecond of a ratio budget, Min of a concurrent one).
type Charge = balance.Charge

// Kind says what an extra attempt follows. The zero value means [KindFailure].
type Kind = balance.Kind

// The kinds. A ratio budget charges them differently. An unknown kind costs as much as KindTimeout.
const (
	// KindFailure follows a reported failure.
	KindFailure = balance.KindFailure
	// KindTimeout follows an attempt that hasn't answered in time. That attempt may still be running, so the server works on
	// both: the most expensive kind.
	KindTimeout = balance.KindTimeout
	// KindHedge runs in parallel with attempts that aren't late yet. The server works on both, so a ratio budget charges as
	// much as for KindTimeout unless its config has a separate cost.
	KindHedge = balance.KindHedge
	// KindUnsent follows an attempt that provably never left this client. Ratio and throttle budgets grant it for free,
	// and a concurrent budget counts it like any other. It only follows the first attempt of a call: an
	// unsent extra attempt has a permit, which its successor uses.
	KindUnsent = balance.KindUnsent
)

// Permit is the right to send one extra attempt, from Withdraw to Settle or Return. It is a plain value: a budget finds in Settle
// what it has put in at Withdraw, and nothing else reads it. A budget composed of others hands on the permit of the one that has
// paid, and can note in Part which one that was. Cost and Kind are the charge.
type Permit = balance.Permit

// State is a reading of a budget.
type State struct {
	Balance  float64 // extra attempts of cost 1 that would be granted now: never negative, may be a fraction or infinite
	Capacity float64 // what Balance would be if nothing were spent or in flight
	Granted  uint64  // extra attempts that were sent, and have ended
	Denied   uint64  // refused withdrawals
}

// Unlimited grants every extra attempt and counts nothing. Its balance and capacity are infinite.
var Unlimited Budget = own{balance.Unlimited}

// New returns a budget; a nil config means the default budget of policies without one. The error lists every field that is out
// of bounds.
func New(c Config) (Budget, error) {
	if c == nil {
		c = balance.Default()
	}
	b, err := balance.New(c)
	if err != nil {
		return nil, err
	}
	return own{b}, nil
}

// own is a budget of this package.
type own struct{ inner balance.Budget }

// Inner returns the engine's budget.
func (o own) Inner() balance.Budget { return o.inner }

// Observe implements [Budget].
func (o own) Observe(now time.Time, e Event) {
	at := clock.At(now)
	switch e {
	case EventCallStarted:
		o.inner.Start(at)
	case EventAttemptFailed:
		o.inner.Fail(at)
	case EventCallSucceeded:
		o.inner.Finish(at, balance.EndAtOnce)
	case EventCallRecovered:
		o.inner.Finish(at, balance.EndSucceeded)
	case EventCallFailed:
		o.inner.Finish(at, balance.EndFailed)
	}
}

// Withdraw implements [Budget].
func (o own) Withdraw(now time.Time, c Charge) (Permit, bool) {
	return o.inner.Withdraw(clock.At(now), c)
}

// Settle implements [Budget].
func (o own) Settle(now time.Time, p Permit, helped bool) { o.inner.Settle(clock.At(now), p, helped) }

// Return implements [Budget].
func (o own) Return(now time.Time, p Permit) { o.inner.Return(clock.At(now), p) }

// State implements [Budget].
func (o own) State(now time.Time) State {
	at := clock.At(now)
	return State{Balance: o.inner.Balance(at), Capacity: o.inner.Capacity(at), Granted: o.inner.Granted(), Denied: o.inner.Denied()}
}
