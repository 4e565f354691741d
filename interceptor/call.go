// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// call is the common part of unary calls and streams: the engine of one call, and the code between it and
// gRPC. The engine decides. Unary calls and streams are its drivers: they make attempts, report their ends, and
// carry out the engine's steps. They use the engine only under the driver's lock.
type call struct {
	engine attempts.Call
	callState
}

// callState is a call without its engine, which resets itself when the memory is reused.
type callState struct {
	retrier *Retrier
	ctx     context.Context
	cancel  context.CancelFunc // of the policy's timeout; nil without one
	cc      *grpc.ClientConn   // nil in tests that call an interceptor directly
	method  string
	entry   *entry
	name    string           // the entry's
	policy  *decision.Policy // first the caller's, if one was given
	budget  balance.Budget
	known   methods.Known // of the method
	set     attempts.Settings
	options callOptions
	flags   callFlags
	alone   bool // no second reply can be made, so attempts never run in parallel
	uploads bool // the application sends any number of messages, so attempts never run in parallel
	with    coexistence
	key     string        // the idempotency key; "" for none
	start   time.Duration // on the budgets' clock

	decided    policy.Reason // the last decision
	allowed    *Event        // the decision for the next extra attempt, for observers; nil: none
	connecting bool          // observers know that the attempt waits for a connection
	off        bool          // the mode prevents further attempts

	outerRetry bool // the call is a retry of go-grpc-middleware's
}

// coexistence is whether gRPC may retry in addition to us.
type coexistence bool

const (
	alone      coexistence = true  // grpc.WithDisableRetry is set
	besideGRPC coexistence = false // unknown
)

var (
	_ attempts.Facts = (*call)(nil)
	_ attempts.Slots = (*call)(nil)
)

// prepareSettings sets the call's key and timeout, and returns the settings with which the engine starts.
func (c *call) prepareSettings(now attempts.Now) *attempts.Settings {
	if header := c.policy.IdempotencyKey(); header != "" || c.flags&keyed != 0 {
		c.ctx, c.key = withKey(c.ctx, header, c.options.caller)
	}
	c.limit()
	c.fillSettings(&c.set, now)
	if find := c.retrier.breaker; find != nil {
		c.set.Breaker = find(c.target(), c.method)
	}
	return &c.set
}

// limit starts the policy's timeout, which counts from the call's start, unless it runs.
func (c *call) limit() {
	if timeout := c.policy.Spec().Timeout; timeout > 0 && c.cancel == nil {
		c.ctx, c.cancel = context.WithTimeout(c.ctx, timeout-(clock.Now()-c.start))
	}
}

// cancelTimeout ends the context of the policy's timeout, once the call is over.
func (c *call) cancelTimeout() {
	if c.cancel != nil {
		c.cancel()
	}
}

// now returns the time, a random number and the state of the connection, for the engine.
func (c *call) now() attempts.Now {
	wall := time.Now()
	now := attempts.Now{At: clock.At(wall), Wall: wall, Chance: c.retrier.random()}
	now.Down, now.Outage = c.retrier.outages.look(c.cc, now.At)
	return now
}

// fillSettings sets the engine's settings for the call in s, which is zero.
func (c *call) fillSettings(s *attempts.Settings, now attempts.Now) {
	if c.alone && c.policy.Parallel() {
		c.warnInSequence()
	}
	s.Policy, s.MaxAttempts, s.Deadline = c.policy, c.options.maxAttempts, attempts.Never
	s.Facts, s.Budget, s.Slots = c, c.budget, c
	s.Alone, s.Uploads, s.Observe = c.alone || c.uploads, c.uploads, c.options.mode == policy.ModeObserve
	if deadline, ok := c.ctx.Deadline(); ok {
		s.Wall, s.Deadline = deadline, now.At+min(time.Until(deadline), attempts.Never-max(now.At, 0))
	}
	if c.known.Any() {
		s.Method = &c.known
	}
}

// wake makes the engine check the time again.
func (c *call) wake(now attempts.Now) attempts.Step {
	if reason := c.reasonGone(now); reason != "" {
		return c.engine.Stop(reason, now)
	}
	return c.remember(c.engine.Wake(now))
}

// remember records a step for later events.
func (c *call) remember(step attempts.Step) attempts.Step {
	if step.Decided > 0 {
		c.decided = step.Decision.Reason
		if step.Decision.Shadow() {
			c.decided = policy.ReasonModeOff // of the call, because nothing follows
		}
	}
	return step
}

// reportEnd reports the end of an attempt to the engine.
func (c *call) reportEnd(a *attempt, r attempts.Result, now attempts.Now) attempts.Step {
	if reason := c.reasonGone(now); reason != "" {
		c.engine.Stop(reason, now) // a runs, so the call is not over yet
	}
	return c.remember(c.engine.Ended(a.number, r, now))
}

// finish notifies caller and observers of the call's end, and returns its error. It fills the caller's targets from the
// attempt that is the answer.
func (c *call) finish(reported *attemptOptions) error {
	err := c.answer(reported)
	c.notifyEnd(err)
	c.options.finished(err)
	return err
}

// answer returns the error of a call that is over, fills the caller's targets from the attempt that is the answer, and tells the
// incoming call if this one has given up. It runs no user code.
func (c *call) answer(reported *attemptOptions) error {
	c.options.deliver(reported)
	end := c.engine.End()
	failure := c.failure(end)
	if failure == nil {
		return nil
	}
	c.noteGaveUp(end)
	return failure
}

// notifyEnd notifies observers of a call that has ended with err.
func (c *call) notifyEnd(err error) {
	end := c.engine.End()
	c.noteOuter(err)
	if c.known.WouldRefuse() {
		c.notifyWouldRefuse()
	}
	c.notifyCall(end, err)
}

// assign makes a attempt n, and returns the options to pass to gRPC.
func (c *call) assign(a *attempt, n int, at time.Duration) []grpc.CallOption {
	a.number, a.began, a.hedge = n, at, c.engine.Hedge(n)
	if n == 1 {
		a.ctx = firstAttempt(c.ctx)
		return c.options.forAttempt(&a.attemptOptions)
	}
	a.ctx = laterAttempt(c.ctx, n-1, a.hedge)
	if c.waitsForReady() {
		return c.options.forAttempt(&a.attemptOptions, grpc.WaitForReady(true))
	}
	return c.options.forAttempt(&a.attemptOptions)
}

// sleep waits until the given time, the end of the call's context, the closing of its connection, or a change of mode or
// policies; and, if watch, until the connection leaves TRANSIENT_FAILURE.
func (c *call) sleep(until time.Duration, watch bool) {
	delay := until - clock.Now()
	interruption := c.retrier.waits.interruption()
	if delay <= 0 || c.retrier.forbids(policy.ModeEnforce, c.method) != "" { // it may have changed since the engine's check
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, delay)
	defer cancel()
	defer context.AfterFunc(interruption, cancel)()
	if c.cc == nil {
		<-ctx.Done()
		return
	}
	for {
		state := c.cc.GetState()
		if state == connectivity.Shutdown || watch && state != connectivity.TransientFailure || !c.cc.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// target returns the canonical target of the call's connection.
func (c *call) target() string { return c.entry.target }
