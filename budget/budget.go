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
	"errors"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
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
// goroutines read them, and a call that succeeds immediately ends with the time of its start.
type Budget interface {
	// Observe reports an event of a call. Ignore events that you don't know.
	Observe(now time.Time, e Event)
	// Withdraw asks for one extra attempt. Reading the balance, deciding and charging must be one step, so that two calls never
	// get the same last token.
	Withdraw(now time.Time, c Charge) (Permit, bool)
	// Settle reports that the extra attempt for which p was granted has ended, and whether it helped: a server answered it within the
	// usual time of an attempt, with OK or an error that no retry can improve. Settle or Return is called once for each permit,
	// and before the call ends.
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
	EventCallStarted    Event = iota + 1 // the first attempt is always free
	EventAttemptFailed                   // an attempt, including the first, ended in a failure that counts against the server
	EventCallSucceeded                   // a call ended with OK
	EventCallFailed                      // a call ended with another status
	EventDeadlineMissed                  // an attempt had no response at its call's deadline, and at most one of the last outcomes was fast
)

// State is a reading of a budget.
type State struct {
	Balance  float64 // extra attempts of cost 1 that would be granted now: never negative, may be a fraction or infinite
	Capacity float64 // what Balance would be if nothing were spent or in flight
	Granted  uint64  // extra attempts that were sent, and have ended
	Denied   uint64  // refused withdrawals
}

// Unlimited grants every extra attempt and counts nothing. Its balance and capacity are infinite.
var Unlimited Budget = own{kind: unlimited{}}

// New returns a budget. The error lists every field that is out of bounds.
func New(c Config) (Budget, error) {
	if c == nil {
		return nil, errors.New("budget: New(nil): must be a config, such as Default()")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return own{c.budget(), c}, nil
}

// own is a budget of this package.
type own struct {
	kind   kind
	config Config
}

// Inner returns the engine's budget, and Fields the values of its config, for internal/balance.
func (o own) Inner() any             { return o.kind }
func (o own) Fields() []bounds.Field { return o.config.fields() }

// Observe implements [Budget].
func (o own) Observe(now time.Time, e Event) {
	at := clock.At(now)
	switch e {
	case EventCallStarted:
		o.kind.Start(at)
	case EventAttemptFailed:
		o.kind.Fail(at)
	case EventCallSucceeded, EventCallFailed:
		o.kind.Finish(at, e)
	case EventDeadlineMissed:
		o.kind.Missed(at)
	}
}

// Withdraw implements [Budget].
func (o own) Withdraw(now time.Time, c Charge) (Permit, bool) {
	return o.kind.Withdraw(clock.At(now), c)
}

// Settle implements [Budget].
func (o own) Settle(now time.Time, p Permit, helped bool) { o.kind.Settle(clock.At(now), p, helped) }

// Return implements [Budget].
func (o own) Return(now time.Time, p Permit) { o.kind.Return(clock.At(now), p) }

// State implements [Budget].
func (o own) State(now time.Time) State {
	at := clock.At(now)
	return State{Balance: o.kind.Balance(at), Capacity: o.kind.Capacity(at), Granted: o.kind.Granted(), Denied: o.kind.Denied()}
}
