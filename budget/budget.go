// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget decides how much extra load retries and hedges may put on a service.
//
// # Why a budget, and not only a number of attempts
//
// A limit of attempts looks at one call. Four attempts are a good answer to one lost packet, and
// they are four times the load when the service is down: every client multiplies its traffic at
// the very moment when the service can bear least, and goes on doing so after the cause is gone,
// because the retries themselves now keep the service down. No number is right for both cases,
// and a call cannot know which of them it is in.
//
// What tells them apart is the traffic as a whole. A budget is shared by all calls to a backend:
// calls earn extra attempts, extra attempts spend what was earned. While few calls fail, there is
// enough for all of them; when most fail, the load grows by the agreed share and not by a
// multiple. The limit of attempts then only bounds how long one call may try.
//
// # Using it
//
// Write budgets in the policy file. A program needs this package for policies in Go, or to share one budget among
// Retriers (interceptor.WithBudget): [New] makes one of a config.
//
//	config              bounds                                    after                       choose it for
//	[RatioConfig]       extra attempts, by the traffic            Finagle, Linkerd, AWS SDKs  nearly everything
//	[ThrottleConfig]    extra attempts, by successes and failures gRPC's retryThrottling      a file shared with other gRPC clients
//	[ConcurrentConfig]  extra attempts in flight                  Envoy                       few and long calls
//	[RefundConfig]      extra attempts since the last successes   AWS SDKs                    a client that makes calls now and then
//
// For another rule, implement [Budget]: its example grants five extra attempts a minute.
package budget

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// Budget is shared by calls. Its methods are safe for concurrent use, and don't wait. They run under the lock of a
// call, so they must not use the Retrier or make calls.
//
// A Retrier reports what its calls do, and asks before each attempt but the first:
//
//	EventCallStarted ─► attempt ─┬─► OK ──────────────────────────────────────► EventCall…
//	                             └─► EventAttemptFailed ─► Withdraw ─┬─► false ► EventCall…
//	                                                                 └─► true ─► Settle, once
//
// The times of a budget come from one monotonic clock, which no step of the wall clock moves: compare them with each
// other only. They may lag behind each other a little, as times read by
// different goroutines do, and for a call that succeeds at once its end has the time of its start.
type Budget interface {
	// Observe reports an event of a call. Ignore events that you don't know.
	Observe(now time.Time, e Event)
	// Withdraw asks for one extra attempt. Reading the balance, deciding and charging must be one step, so that two calls
	// never get the same last token. The factor multiplies the cost of the kind, for failures that are dearer or cheaper to
	// retry than others: more than 0, at most 100; anything else counts as 1.
	Withdraw(now time.Time, k Kind, factor float64) (Permit, bool)
	// Settle reports what has become of the extra attempt that p was granted for: once for each permit, and before the
	// call ends.
	Settle(now time.Time, p Permit, o Outcome)
	// State is a reading for people and metrics. To decide by it, and then to withdraw, is a race.
	State(now time.Time) State
}

// Event is what a call reports to its budget.
type Event uint8

// The events. A call reports EventCallStarted once, and then exactly one of its ends.
const (
	EventCallStarted   Event = iota + 1 // the first attempt is always free
	EventAttemptFailed                  // an attempt, the first too, ended in a failure that speaks against the server
	EventCallSucceeded                  // a call ended with OK, and no extra attempt was sent
	EventCallRecovered                  // a call ended with OK, after extra attempts were sent
	EventCallFailed                     // a call ended with another status
)

// Kind is what an extra attempt follows. The zero value means [KindFailure].
type Kind uint8

// The kinds. Ratio and refund budgets charge them differently; a kind that they don't know costs what
// KindTimeout costs.
const (
	// KindFailure follows a failure that was reported.
	KindFailure Kind = iota + 1
	// KindTimeout follows an attempt that has not answered in time. It may still be running, so that
	// the server works on two: the dearest kind.
	KindTimeout
	// KindHedge runs in parallel to attempts that aren't late yet. The server works on both, so a ratio budget charges as
	// much as for KindTimeout unless its config says otherwise. A refund budget charges what KindFailure costs.
	KindHedge
	// KindUnsent follows an attempt that provably never left this client. Ratio, throttle and refund budgets grant it for
	// nothing, a concurrent one counts it as any other, and [Empty] refuses it. It follows the first attempt of a call: an
	// extra attempt that was not sent has a permit, which its successor uses.
	KindUnsent
)

// Permit is the right to send one extra attempt, from Withdraw to Settle. It may be copied. It is opaque but for Cost, in
// which a budget of your own may keep any number.
type Permit = balance.Permit

// Outcome is what has become of an extra attempt.
type Outcome uint8

// The outcomes.
const (
	OutcomeHelped Outcome = iota + 1 // it succeeded, in the time that an attempt should take
	OutcomeFailed                    // it was sent, and did not help
	OutcomeUnsent                    // it was never sent: what was charged for it must be given back
)

// State is a reading of a budget.
type State struct {
	Balance  float64 // extra attempts of cost 1 that would be granted now: never negative, may be a fraction or infinite
	Capacity float64 // what Balance would be if nothing were spent or in flight
	Granted  uint64  // withdrawals so far, those of attempts that were not sent too
	Denied   uint64  // withdrawals that were refused so far
}

// Unlimited grants every extra attempt and counts nothing. Its balance and capacity are infinite.
var Unlimited Budget = own{balance.Unlimited}

// Empty grants no extra attempt. It is one value for the whole process, and so is its count of denials.
var Empty Budget = own{balance.Empty}

// New makes a budget; nil is the config of the budget that policies have which name none. The error lists every field that
// is out of bounds. A config with a Fleet is refused, since only a Retrier has pools.
func New(c Config) (Budget, error) {
	b, err := balance.New(inside(c), nil)
	if err != nil {
		return nil, err
	}
	return own{b}, nil
}

// own is a budget of this package.
type own struct{ inner balance.Budget }

// Inner is the budget as the engine uses it.
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
func (o own) Withdraw(now time.Time, k Kind, factor float64) (Permit, bool) {
	return o.inner.Withdraw(clock.At(now), balance.Charge{Kind: balance.Kind(k), Factor: factor})
}

// Settle implements [Budget].
func (o own) Settle(now time.Time, p Permit, out Outcome) {
	if at := clock.At(now); out == OutcomeUnsent {
		o.inner.Return(at, p)
	} else {
		o.inner.Settle(at, p, out == OutcomeHelped)
	}
}

// State implements [Budget].
func (o own) State(now time.Time) State {
	at := clock.At(now)
	return State{Balance: o.inner.Balance(at), Capacity: o.inner.Capacity(at), Granted: o.inner.Granted(), Denied: o.inner.Denied()}
}
