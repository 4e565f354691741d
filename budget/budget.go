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
//	kind          bounds                                    after                       choose it for
//	[Ratio]       extra attempts, by the traffic            Finagle, Linkerd, AWS SDKs  nearly everything
//	[Throttle]    extra attempts, by successes and failures gRPC's retryThrottling      a file shared with other gRPC clients
//	[Concurrent]  extra attempts in flight                  Envoy                       few and long calls
//	[Refund]      extra attempts since the last successes   AWS SDKs                    a client that makes calls now and then
//
// [Unlimited] and [Empty] stand where another library has nil. All take the time as an argument,
// start no goroutine and do no I/O, so that a client, a simulation and a test run the same code.
// Package budget knows nothing of gRPC: who calls it decides what a failure is. The config of a budget may
// change while calls use it: see [Reloadable].
package budget

import (
	"sync/atomic"
	"time"
)

// Budget is shared by calls; all of its methods are safe for concurrent use and none waits. They run under the lock of a
// call, so they must not use the Retrier or make calls.
//
// A call tells it of its start and end, of failed attempts in between, and asks before each
// attempt but the first:
//
//	Start ─► attempt ─┬─► OK ──────────────────────────► Finish
//	                  └─► Fail ─► Withdraw ─┬─► refused ► Finish
//	                                        └─► extra attempt ─► Settle, or Return if it was not sent
//
// The times of one budget come from one clock that never goes back and counts from any moment, [Now]
// as a rule. They may lag behind each other a little, as times read by different goroutines do.
type Budget interface {
	// Start says that a call begins. Its first attempt is always free.
	Start(now time.Duration)
	// Fail says that an attempt ended in a failure that speaks against the server.
	Fail(now time.Duration)
	// Withdraw asks for one extra attempt. Reading the balance, deciding and charging are one
	// step: two callers never get the same last token.
	Withdraw(now time.Duration, c Charge) (Permit, bool)
	// Return gives back the permit of an extra attempt that was never sent.
	Return(now time.Duration, p Permit)
	// Settle says that the extra attempt of p has ended, and whether it helped: whether it succeeded,
	// in the time that an attempt should take. Every permit that is not returned is settled, once.
	Settle(now time.Duration, p Permit, helped bool)
	// Finish says how a call ended: once for each Start, after its permits are settled. For a call
	// that succeeded at once, now may be as old as its start.
	Finish(now time.Duration, e End)
	// Balance is how many extra attempts of cost 1 would be granted now. It is a reading for people
	// and metrics: to decide by it, and then to withdraw, is a race. It is never negative, and may
	// be a fraction or infinite.
	Balance(now time.Duration) float64
	// Capacity is what Balance would be if nothing were spent or in flight.
	Capacity(now time.Duration) float64
	// Granted is how many withdrawals have been granted so far, those that were given back too.
	Granted() uint64
	// Denied is how many withdrawals have been refused so far.
	Denied() uint64
}

// tally counts withdrawals.
type tally struct{ granted, denied atomic.Uint64 }

// Granted is how many withdrawals have been granted so far, those that were given back too.
func (t *tally) Granted() uint64 { return t.granted.Load() }

// Denied is how many withdrawals have been refused so far.
func (t *tally) Denied() uint64 { return t.denied.Load() }

// End is how a call ended.
type End uint8

// The ends.
const (
	EndFailed    End = iota // with a status other than OK
	EndSucceeded            // with OK, after extra attempts were sent
	EndAtOnce               // with OK, and no extra attempt was sent
)

// origin is where the clock of this process counts from.
var origin = time.Now()

// Now is the clock that Retriers tell their budgets the time by: monotonic, and the same in the whole
// process, so that Retriers may share a budget. Ask for a balance with it: b.Balance(budget.Now()).
// It is a Duration, since a [time.Time] costs a third more to read, in every call.
func Now() time.Duration { return time.Since(origin) }

// At is what [Now] was at a time that [time.Now] has returned.
func At(t time.Time) time.Duration { return t.Sub(origin) }
