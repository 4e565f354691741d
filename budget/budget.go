// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the extra load that retries and hedges put on a service.
//
// Write budgets in the policy file:
//
//	budgets:
//	- name: orders            # a policy names it with its key budget
//	  bucket: {size: 20}      # other numbers are those of [Default]
//
// A policy that names none has the default budget. A program needs this package only for a policy in Go (policy.Config), or to share a
// budget among Retriers (interceptor.WithBudget): [New] returns the budget of a config.
//
// # Why a budget
//
// A maximum of four attempts is right for a lost packet. If the service is down, it means four times the load, which can keep the service
// down. A call can't tell these cases apart, but the traffic as a whole does. So all calls to a target share a budget, and each extra
// attempt needs its permission.
//
// # Kinds
//
//	config            rule                                               choose it for
//	[BucketConfig]    a bucket of extra attempts, which successes fill   nearly everything: [Default] is one
//	[ThrottleConfig]  gRPC's retryThrottling                             a file shared with other gRPC clients
//
// For another rule, implement [Budget]. The example of Budget allows five extra attempts a minute.
package budget

import (
	"errors"
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// Budget is shared by calls. Its methods must be safe for concurrent use, and must not wait. They run under the lock of a call,
// so they must not use the Retrier or make calls.
//
// All times come from one monotonic clock: compare them only with each other. A later call may have a slightly earlier time, because
// different goroutines read the clock, and a call that succeeds immediately reports its end with the time of its start.
type Budget interface {
	// Observe reports an event of a call. Ignore events that you don't know.
	Observe(now time.Time, e Event)
	// Allow asks for one extra attempt. Reading the balance, deciding and charging must be one step, so that two calls never get the same
	// last token. After [Yes], ended is called once, when that attempt has ended. It may be nil.
	Allow(now time.Time, c Cause) (a Answer, ended func(now time.Time, how End))
}

// Answer is the answer to [Budget.Allow].
type Answer uint8

// Answers. The zero value is No.
const (
	No    Answer = iota // the call ends with budget_exhausted
	Later               // all attempts fail: the call may wait, and asks again with CauseWaited. If it can't, it ends with failing_everywhere
	Yes                 // the attempt may be sent
)

// Event is an event of a call. A call that never reached a server reports only EventUnconnected, if an attempt could not leave this client. It
// reports none if an inner interceptor responds to it.
type Event uint8

// Events of a call.
const (
	// An attempt, the first or a later one, ended in a failure that counts against the server. The cut of a stream that ran for 10 s and is
	// resumed doesn't.
	EventAttemptFailed Event = iota + 1
	EventCallSucceeded       // a call ended with OK
	EventCallFailed          // a call ended with another status
	EventAnswered            // the server answered an attempt: with OK, an error about the request, or a stream's first message
	EventUnconnected         // an attempt never left this client
)

// Cause says why an extra attempt is sent.
type Cause uint8

// Causes of an extra attempt. Treat an unknown one as CauseSlow. An attempt that follows one that never left this client needs no
// permission, because it adds no load.
//
// After [Later], the call asks again with CauseWaited. CauseReconnected costs nothing: No sends the attempt as well, and only Later makes
// it wait, so that a budget can let calls return one after the other.
const (
	CauseFailure     Cause = iota + 1 // an attempt has failed
	CauseSlow                         // an attempt takes longer than its timeout or the hedging delay: the server may work on both
	CauseOvertaken                    // an attempt is slow, but a later one has been answered, and none of the last responses was slow
	CauseWaited                       // an attempt has failed, and the call has waited since the budget answered Later
	CauseReconnected                  // no attempt has left this client, and the call has waited for a connection
)

// End says how an extra attempt has ended.
type End uint8

// Ends of an extra attempt.
const (
	EndUnsent End = iota + 1 // it costs nothing: no server is known to have received it, or it resumed a stream and ran for 10 s
	EndFailed                // it didn't help
	EndHelped                // the server responded to it in time: with OK, or with an error about the request, such as NOT_FOUND
)

// State describes a budget at one moment.
type State struct {
	Balance  float64 // retries that would be allowed now: never negative, may be a fraction or infinite
	Capacity float64 // what Balance would be if nothing were spent
}

// Stater is a budget whose state people and metrics can read. Don't decide by it: the balance may change before you act. The budgets of
// this package implement it.
type Stater interface {
	State(now time.Time) State
}

// Config is the config of a budget: a [BucketConfig] or a [ThrottleConfig]. All fields count, even zeros.
type Config interface {
	// Kind returns the key of its kind in a policy file: bucket or throttle.
	Kind() string
	fields() []bounds.Field // the values and their bounds
	budget() Budget         // a new budget; the config was checked
}

// New returns a budget. The error joins those of all fields that are out of bounds ([errors.Join]).
func New(c Config) (Budget, error) {
	if c == nil {
		return nil, errors.New("budget: New(nil): must be a config, such as Default()")
	}
	if err := bounds.Check(c.fields()); err != nil {
		return nil, err
	}
	return c.budget(), nil
}

// Unlimited allows every extra attempt. Its balance and capacity are infinite.
var Unlimited Budget = unlimited{}

type unlimited struct{}

func (unlimited) Observe(time.Time, Event) {}

func (unlimited) Allow(time.Time, Cause) (Answer, func(time.Time, End)) { return Yes, nil }

func (unlimited) State(time.Time) State { return State{math.Inf(1), math.Inf(1)} }
