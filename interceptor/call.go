// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"slices"
	"strconv"
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

// call is what unary calls and streams have in common: the engine of one call, and what stands between that and
// gRPC. The engine decides; unary calls and streams are its drivers: they make attempts, report their ends, and
// do what the engine's steps say. Whatever uses the engine is done under the driver's lock.
type call struct {
	engine attempts.Call
	callState
}

// callState is all of a call but its engine, which a call that uses its memory again begins anew by itself.
type callState struct {
	retrier *Retrier
	ctx     context.Context
	cancel  context.CancelFunc // of the policy's timeout; nil without one
	cc      *grpc.ClientConn   // nil in tests that call an interceptor directly
	method  string
	policy  *decision.Policy
	budget  balance.Budget
	known   methods.Known // of the method
	options callOptions
	flags   callFlags
	alone   bool // no second reply can be made, so that attempts never run beside each other
	uploads bool // the application sends any number of messages, for which attempts never run beside each other either
	with    coexistence
	key     string        // the idempotency key; "" for none
	keyless bool          // an attempt without it may have reached a server, since the policy has come late
	start   time.Duration // on the budgets' clock
	outside outside       // a stream's request is there once it is sent, until the call is committed

	decided policy.Reason // the last that was decided
	allowed *Event        // of the extra attempt that is to be sent, for observers; nil: none
	off     bool          // the mode lets nothing be sent any more

	outerRetry bool // the call is one
}

var (
	_ attempts.Facts = (*call)(nil)
	_ attempts.Slots = (*call)(nil)
)

// begin gives the call its key and its timeout, and starts the engine.
func (c *call) begin(now attempts.Now) attempts.Step {
	if header := c.policy.IdempotencyKey(); header != "" || c.flags&keyed != 0 {
		c.ctx, c.key = withKey(c.ctx, header, c.options.caller)
	}
	c.limit()
	s := c.settings(now)
	if find := c.retrier.breaker; find != nil {
		s.Breaker = find(c.target(), c.method)
	}
	return c.engine.Start(s, now)
}

// limit begins the policy's timeout, which counts from the call's start, if it has not begun.
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

// now is what the engine is told of the present.
func (c *call) now() attempts.Now {
	wall := time.Now()
	now := attempts.Now{At: clock.At(wall), Wall: wall, Chance: c.retrier.random()}
	now.Down, now.Outage = c.retrier.outages.look(c.cc, now.At)
	return now
}

// settings are what the engine starts with.
func (c *call) settings(now attempts.Now) attempts.Settings {
	r := c.retrier
	if c.alone && c.policy.Parallel() {
		c.warnInSequence()
	}
	s := attempts.Settings{
		Policy: c.policy, MaxAttempts: c.options.maxAttempts, Deadline: attempts.Never,
		Facts: c, Budget: c.budget, Slots: c, Alone: c.alone || c.uploads, Uploads: c.uploads, Observe: c.options.mode == policy.ModeObserve,
		ConnectWait: r.outages.longestWait(c.ctx, c.policy), MaxOutage: r.outages.maxOutage(c.policy),
	}
	if waits, says := c.saysWaitForReady(); says {
		s.ConnectWait, s.FailFast = 0, !waits
	}
	if c.policy.Index() < 0 && c.policy.MaxAttempts() > r.attemptLimit() {
		most := strconv.Itoa(c.policy.MaxAttempts())
		r.warnOnce(&cutAttempts, most, most, r.attemptLimit())
	}
	if deadline, ok := c.ctx.Deadline(); ok {
		s.Wall, s.Deadline = deadline, now.At+min(time.Until(deadline), attempts.Never-max(now.At, 0))
	}
	if c.known.Any() {
		s.Method = &c.known
	}
	return s
}

// Safe implements [attempts.Facts].
func (c *call) Safe() bool {
	switch {
	case c.flags&safe != 0:
		return true
	case c.keyless:
		return false
	case c.key != "" && keyCounts(c.policy):
		return true
	default:
		return c.retrier.rules.Load().set.Safe(c.policy, c.method)
	}
}

// InRetry implements [attempts.Facts].
func (c *call) InRetry() bool { return inRetry(c.ctx) }

// Enter implements [attempts.Slots].
func (c *call) Enter() bool { return c.retrier.waitLimit.enter(c.target()) }

// Leave implements [attempts.Slots].
func (c *call) Leave() { c.retrier.waitLimit.leave(c.target()) }

// Off implements [attempts.Facts]. A mode that has become stricter holds for the rest of the call.
func (c *call) Off() policy.Reason {
	began := c.options.mode
	if c.off {
		began = policy.ModeOff
	}
	reason := c.retrier.forbids(began, c.method)
	c.off = c.off || reason == policy.ReasonModeOff
	return reason
}

// mode is that of the call now.
func (c *call) mode() policy.Mode {
	if c.off {
		return policy.ModeOff
	}
	return c.options.mode
}

// gone is why nobody waits for the call's answer any more; "" while somebody does. A deadline counts as soon as it
// has passed: gRPC and the server act on it by clocks of their own.
func (c *call) gone(now attempts.Now) policy.Reason {
	deadline, limited := c.ctx.Deadline()
	switch err := c.ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded), err == nil && limited && !now.Wall.Before(deadline):
		return policy.ReasonDeadlineExceeded
	case err != nil:
		return policy.ReasonCancelled
	case closed(c.cc):
		return policy.ReasonClosed
	default:
		return ""
	}
}

// wake lets the engine look at the time again.
func (c *call) wake(now attempts.Now) attempts.Step {
	if reason := c.gone(now); reason != "" {
		return c.engine.Stop(reason, now)
	}
	return c.remember(c.engine.Wake(now))
}

// remember keeps what observers are told of the step later.
func (c *call) remember(step attempts.Step) attempts.Step {
	if step.Decided > 0 {
		c.decided = step.Decision.Reason
		if step.Decision.Shadow() {
			c.decided = policy.ReasonModeOff // of the call, since nothing follows
		}
	}
	return step
}

// reportEnd reports the end of an attempt to the engine.
func (c *call) reportEnd(a *attempt, r attempts.Result, now attempts.Now) attempts.Step {
	if reason := c.gone(now); reason != "" {
		c.engine.Stop(reason, now) // a runs, so the call is not over yet
	}
	c.noteEnd(a, &r)
	return c.remember(c.engine.Ended(a.number, r, now))
}

// noteEnd keeps what the end of an attempt says of the call, before the engine hears of it.
func (c *call) noteEnd(a *attempt, r *attempts.Result) {
	if r.Unsent && a.number == 1 {
		c.keyless = false // those that follow carry the key
	}
}

// finish tells everybody that the call is over, and returns its error. The caller gets what was reported of the
// attempt that is the answer.
func (c *call) finish(reported *attemptOptions) error {
	err := c.answer(reported)
	c.notifyEnd(err)
	return err
}

// answer returns the error of a call that is over, and gives the caller what was reported of the attempt that is the
// answer. It calls nothing of the user's.
func (c *call) answer(reported *attemptOptions) error {
	c.options.deliver(reported)
	if failure := c.failure(c.engine.End()); failure != nil {
		return failure
	}
	return nil
}

// notifyEnd runs the callbacks of a call that has ended with err.
func (c *call) notifyEnd(err error) {
	end := c.engine.End()
	if err != nil {
		c.noteGaveUp(end)
	}
	c.noteOuter(end, err)
	if c.known.WouldRefuse() {
		c.retrier.notifyWouldRefuse(c.ctx, c.method, c.cc, c.policy, &c.options)
	}
	c.notifyCall(end, err)
	c.options.finished(err)
}

// catchUp looks again for the policy of a call that began before its connection had received any service config,
// which the first attempt has waited for. It reports whether the call has another policy now.
func (c *call) catchUp() bool {
	if c.flags&configPending == 0 {
		return false
	}
	f := c.retrier.lookup(c.cc, c.method, true)
	if f.pending || f.policy == nil {
		return false
	}
	c.flags &^= configPending
	c.policy, c.options.maxAttempts = f.policy, min(c.options.maxAttempts, f.maxAttempts)
	c.options.shared = slices.Clip(c.options.shared) // the first attempt may still use what stands behind them
	c.follow(f.rules)
	c.ctx = c.options.assignCriticality(c.ctx, c.policy)
	if !c.known.Any() {
		c.known = c.retrier.knownFor(f.rules, c.policy, c.cc, c.method, &c.options, clock.Now())
	}
	if header := c.policy.IdempotencyKey(); header != "" {
		before := c.ctx
		c.ctx, c.key = withKey(c.ctx, header, c.options.caller)
		c.keyless = !carries(before, header, c.key)
	}
	if b := c.retrier.budgetFor(f.rules, f.policy, c.cc, c.method, &c.options); b != c.budget {
		b.Start(c.start)
		c.budget.Finish(clock.Now(), balance.EndFailed)
		c.budget = b
	}
	return true
}

// adapt tells the engine of a policy that has become known while the first attempt ran.
func (c *call) adapt(now attempts.Now) attempts.Step {
	return c.engine.Adapt(c.settings(now), now)
}

// assign makes a the attempt with the number n, and returns the options that gRPC gets for it.
func (c *call) assign(a *attempt, n int, now attempts.Now) []grpc.CallOption {
	a.number, a.began, a.hedge = n, now.At, c.engine.Hedge(n)
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

// waitsForReady reports whether gRPC lets attempts after the first wait for a connection.
func (c *call) waitsForReady() bool {
	_, limited := c.ctx.Deadline()
	_, says := c.saysWaitForReady()
	return limited && c.policy.WaitForReadyOnRetry() && !says
}

// saysWaitForReady is what the caller has said of whether gRPC waits for a connection, if anything. The last option applies.
func (c *call) saysWaitForReady() (waits, says bool) {
	for _, o := range slices.Backward(c.options.caller) {
		if o, ok := promoted(o).(grpc.FailFastCallOption); ok {
			return !o.FailFast, true
		}
	}
	return false, false
}

// sleep returns when the time has come, when the call's context ends or its connection is closed, when the mode or the
// policies change, and, if it is to watch, as soon as the connection is not in TRANSIENT_FAILURE.
func (c *call) sleep(until time.Duration, watch bool) {
	delay := until - clock.Now()
	interruption := c.retrier.waits.interruption()
	if delay <= 0 || c.retrier.forbids(policy.ModeEnforce, c.method) != "" { // it may have changed since the engine has asked
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

// target is what the call's connection leads to.
func (c *call) target() string { return c.retrier.targets.canonical(c.cc) }

// closed reports whether the connection was closed for good.
func closed(cc *grpc.ClientConn) bool {
	return cc != nil && cc.GetState() == connectivity.Shutdown
}
