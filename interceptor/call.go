// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/policies"
	"github.com/stagger-go/stagger/policy"
)

// call is the common part of unary calls and streams: the engine of one call, and the code between it and
// gRPC. The engine decides. Unary calls and streams are its drivers: they make attempts, report their ends, and
// carry out the engine's steps.
type call struct {
	*engineState // nil until something must be decided

	retrier *Retrier
	ctx     context.Context
	cancel  context.CancelFunc // of the policy's timeout; nil without one
	cc      *grpc.ClientConn   // nil in tests that call an interceptor directly
	method  string
	entry   *entry
	policy  *policy.Policy // first the caller's, if one was given
	options callOptions
	key     string        // the idempotency key; "" for none
	start   time.Duration // on the budgets' clock

	flags       callFlags
	grpcRetries grpcRetries
	inSequence  bool // attempts never run in parallel: no second reply can be made, or the application sends a stream
}

// engineState is what a call needs when something must be decided. If several goroutines use the call, its driver's lock guards it.
type engineState struct {
	engine     attempts.Call
	set        attempts.Settings
	off        bool          // the mode prevents further attempts
	decided    policy.Reason // the last decision that observers were told
	allowed    *Event        // the decision for the next extra attempt, for observers; nil: none
	connecting bool          // observers know that this attempt waits for a connection
}

// deciding reports whether the engine has started.
func (c *call) deciding() bool { return c.engineState != nil }

// grpcRetries is whether gRPC may retry in addition to us.
type grpcRetries bool

const (
	grpcRetriesOff grpcRetries = false // grpc.WithDisableRetry is set
	grpcMayRetry   grpcRetries = true  // unknown
)

// startEngine starts the engine before the first attempt, because breaker or admission are asked, or a stream's attempt may be slow.
// requestFollows is as in [attempts.Settings].
func (c *call) startEngine(requestFollows bool, now attempts.Now) attempts.Step {
	c.prepareEngine(requestFollows)
	if find := c.retrier.breaker; find != nil {
		if gate := find(c.target(), c.method); gate != nil {
			c.set.Breaker = &callGate{gate, c.ctx}
		}
	}
	c.set.Admission, c.set.Enforced = c.entry.gate, c.entry.mode == policy.ModeEnforce
	return c.engine.Start(&c.set, now)
}

// joinEngine starts the engine of a unary call with the first attempt, which was made without a question.
func (c *call) joinEngine() {
	c.prepareEngine(false)
	c.engine.Join(&c.set, attempts.NewTiming(c.start, false))
}

// prepareContext sets the call's key and timeout.
func (c *call) prepareContext() {
	if header := c.policy.IdempotencyKey(); header != "" || c.flags&keyed != 0 {
		c.ctx, c.key = withKey(c.ctx, header, c.options.caller)
	}
	if timeout := c.policy.Timeout(); timeout > 0 { // it counts from the call's start
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
func (c *call) now() (now attempts.Now) {
	now.Wall = time.Now()
	now.At = clock.At(now.Wall)
	now.Chance = c.retrier.random()
	now.Off = c.forbids(c.entry.mode)
	c.retrier.outages.look(c.cc, &now)
	if hook := c.entry.rules.elsewhere; hook != nil && now.Down {
		if _, since := hook.LastPick(c.ctx); !since.IsZero() {
			now.Outage = max(now.Outage, now.At-clock.At(since))
		}
	}
	return now
}

// prepareEngine makes the engine, unless the call has it, and its settings.
func (c *call) prepareEngine(requestFollows bool) {
	if !c.deciding() {
		c.engineState = new(engineState)
	}
	s := &c.set
	s.Policy = c.policy
	s.MaxAttempts = c.options.maxAttempts
	s.Deadline = attempts.Never
	s.Budget, s.Slots = c.entry.budget, &c.entry.slots
	s.Safe, s.InRetry = c.isSafe(), inRetry(c.ctx)
	s.InSequence = c.inSequence
	s.RequestFollows = requestFollows
	s.Observe = c.entry.mode == policy.ModeObserve
	if deadline, ok := c.ctx.Deadline(); ok {
		at := clock.Now()
		s.Deadline = at + min(time.Until(deadline), attempts.Never-max(at, 0))
	}
	s.Method = c.entry.responses
	s.Connect = c.connectWait()
}

// wake makes the engine check the time again.
func (c *call) wake(now attempts.Now) attempts.Step {
	c.stayOff(&now)
	if reason := c.reasonGone(now); reason != "" {
		return c.engine.Stop(reason, now)
	}
	c.connect(now)
	return c.engine.Wake(now)
}

// connect has an idle channel connect, because a slow attempt may have been sent over a connection that has gone since: while the
// channel stays idle, no other attempt is sent beside it.
func (c *call) connect(now attempts.Now) {
	if now.Connecting && c.engine.Running() > 0 {
		c.cc.Connect()
	}
}

// reportEnd reports the end of an attempt to the engine.
func (c *call) reportEnd(a *attempt, r attempts.Result, now attempts.Now) attempts.Step {
	c.stayOff(&now)
	if reason := c.reasonGone(now); reason != "" {
		c.engine.Stop(reason, now) // a runs, so the call is not over yet
	}
	return c.engine.Ended(a.number, r, now)
}

// atOnce is the end of a call about which nothing had to be decided.
var atOnce = attempts.End{Reason: policy.ReasonSucceeded, Answer: 1, Attempts: 1}

func (c *call) end() *attempts.End {
	if !c.deciding() {
		return &atOnce
	}
	return c.engine.End()
}

// recordSuccess tells method and budget of a call whose first attempt has succeeded, so that nothing had to be decided.
func (c *call) recordSuccess(a *attempt) {
	if c.foreign(a, false) {
		return
	}
	if c.entry.responses != nil {
		at := clock.Now()
		c.answeredAtOnce(at, at-c.start)
	}
	c.entry.budget.Observe(clock.Time(c.start), budget.EventCallSucceeded)
}

// answeredAtOnce tells the method of a response of the first attempt, about which nothing had to be decided.
func (c *call) answeredAtOnce(at, took time.Duration) {
	answer := attempts.Answer{Took: took, Left: attempts.Never, Limit: c.policy.PerAttemptTimeout(), Accepted: true}
	if deadline, ok := c.ctx.Deadline(); ok && c.entry.responses.Slow(took) { // else the time left makes no difference
		answer.Left = at - c.start + time.Until(deadline)
	}
	c.entry.responses.Answered(at, answer)
}

// finish notifies caller and observers of the call's end, and returns its error. It fills the caller's targets from the
// attempt that is the response.
func (c *call) finish(reported *report) error {
	err := c.answer(reported)
	c.notifyEnd(err)
	c.options.finished(err)
	return err
}

// answer returns the error of a call that is over, fills the caller's targets from the attempt that is the response, and tells the
// incoming call if this one has given up. It runs no user code.
func (c *call) answer(reported *report) error {
	c.options.deliver(reported)
	end := c.end()
	failure := c.failure(end)
	if failure == nil {
		return nil
	}
	c.noteGaveUp(end)
	return failure
}

// notifyEnd notifies observers of a call that has ended with err.
func (c *call) notifyEnd(err error) {
	outerRetry := c.noteOuter(err)
	if c.end().WouldRefuse {
		c.notifyWouldRefuse()
	}
	c.notifyCall(c.end(), err, outerRetry)
}

// noteGaveUp records in the incoming call that a call made in its context has given up.
func (c *call) noteGaveUp(end *attempts.End) {
	if in := inbound(c.ctx); in != nil && c.mode() == policy.ModeEnforce && end.GaveUp() {
		in.gaveUp.Store(true)
	}
}

// noteOuter reports whether a call that failed is itself a retry by go-grpc-middleware, in version 2 or 1, and warns once per method.
func (c *call) noteOuter(err error) bool {
	if err == nil || c.mode() != policy.ModeEnforce || c.options.maxAttempts < 2 {
		return false
	}
	md, _ := metadata.FromOutgoingContext(c.ctx)
	isRetry := len(md["x-retry-attempt"]) > 0 || len(md["x-retry-attempty"]) > 0
	if isRetry {
		c.retrier.warnOnce(&outerCalls, c.entry.name, c.entry.name)
	}
	return isRetry
}

// warnInSequence warns if the policy's attempts should run in parallel, and can't. No lock may be held: observers hear of it.
func (c *call) warnInSequence() {
	what := &timeoutInSequence
	switch {
	case !c.inSequence || !c.policy.Parallel():
		return
	case c.entry.mode == policy.ModeOff || c.options.maxAttempts < 2:
		return
	case policies.Hedge(c.policy) != nil:
		what = &hedgeInSequence
	}
	c.retrier.warnOnce(what, c.entry.name, c.entry.name)
}

// sleep waits until the given time, the end of the call's context, the closing of its connection, or a change of mode or
// policies; and, if watch, until the connection leaves TRANSIENT_FAILURE.
func (c *call) sleep(until time.Duration, watch bool) {
	delay := until - clock.Now()
	if delay <= 0 {
		return
	}
	interruption := c.retrier.waits.interruption()
	if c.forbids(policy.ModeEnforce) != "" { // it may have changed since the engine's check
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

// callFlags come from a call's options and its policy, before the first attempt.
type callFlags uint8

const (
	disabled     callFlags = 1 << iota // the call bypasses the Retrier
	safe                               // the caller declares it idempotent
	keyed                              // the caller asks for an idempotency key
	defaultLimit                       // the call's deadline is that of the default timeout
)

// readRequest reads the caller's options, and finds the entry of the call. Every call runs it. first is for the first attempt.
func (c *call) readRequest(caller []grpc.CallOption, first *attemptOptions) {
	r, o := c.retrier, &c.options
	o.caller = caller
	o.shared = first.array[:added]
	o.maxAttempts = math.MaxInt
	for _, option := range caller {
		if _, ok := option.(grpc.StaticMethodCallOption); ok { // fast path: all calls of generated code have it
			o.static = true
			o.shared = append(o.shared, option)
			continue
		}
		c.readOption(option)
	}
	if c.flags&disabled != 0 {
		return
	}
	c.start = clock.Now()
	c.entry = r.entry(c.cc, c.method, o.static, c.policy, c.start)
	c.policy = c.entry.policy
	if o.maxAttempts < 1 {
		n := strconv.Itoa(o.maxAttempts)
		r.warnOnce(&noAttempts, n, n)
	}
	o.maxAttempts = max(min(c.entry.most, o.maxAttempts), 1)
	if o.opaque {
		o.maxAttempts = 1
	}
	limits := c.entry.limits.options
	if o.limited {
		limits = c.entry.limits.optionsBeside(caller)
	}
	if len(limits) > 0 { // append of none would still call the runtime, in every call
		o.shared = append(o.shared, limits...)
	}
	o.peer = o.peer || r.observers.Load().any
	if c.entry.mode != policy.ModeEnforce { // then another library's retries don't multiply
		return
	}
	first.retrier = r
	if o.foreign {
		r.warnOnce(&foreignOptions, c.entry.name, c.entry.name)
	}
}

// readOption reads an option of the caller's.
func (c *call) readOption(option grpc.CallOption) {
	o := &c.options
	switch targetOf(option).(type) {
	case grpc.HeaderCallOption:
		o.notify, o.header = true, true
		return
	case grpc.PeerCallOption:
		o.notify, o.peer = true, true
		return
	case grpc.TrailerCallOption:
		o.notify = true
		return
	}
	if _, ok := option.(grpc.OnFinishCallOption); ok { // gRPC itself doesn't call embedded ones
		o.notify = true
		return
	}
	switch promoted(option).(type) {
	case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, nil:
		o.opaque = true
		kind := fmt.Sprintf("%T", option)
		c.retrier.warnOnce(&opaqueOption, kind, kind)
	case grpc.StaticMethodCallOption:
		o.static = true
	case grpc.ForceCodecV2CallOption, grpc.ForceCodecCallOption, grpc.CustomCodecCallOption, grpc.ContentSubtypeCallOption:
		o.codec = true
	case grpc.FailFastCallOption, grpc.MaxSendMsgSizeCallOption, grpc.MaxRecvMsgSizeCallOption:
		o.limited = true
	case grpc.EmptyCallOption:
		c.readOwn(unwrapped(option))
	}
	o.shared = append(o.shared, option)
}

// readOwn reads an option of this package.
func (c *call) readOwn(option grpc.CallOption) {
	switch option := option.(type) {
	case disableOption:
		c.flags |= disabled
	case insideOption:
		c.flags |= disabled
		c.retrier.warnOnce(&nestedRetriers, "", "")
	case policyOption:
		c.policy = option.policy
		if c.policy == nil {
			c.policy = c.retrier.single
		}
	case maxAttemptsOption:
		c.options.maxAttempts = option.n
	case idempotentOption:
		c.flags |= safe
	case keyOption:
		c.flags |= keyed
	default:
		c.options.foreign = c.options.foreign || ofMiddleware(option)
	}
}

// announce notifies observers of the call's start, and finds what its context determines.
func (c *call) announce(ctx context.Context) {
	r := c.retrier
	if r.observers.Load().starts {
		ctx = r.startCall(ctx, c.event(0, codes.OK, nil))
	}
	c.ctx = ctx
	if hook := c.entry.rules.elsewhere; hook != nil && c.cc != nil && c.options.maxAttempts > 1 {
		c.ctx = hook.NewContext(ctx)
	}
}

// inboundShare is the part of an incoming call's remaining time that calls made in it wait for a connection.
// The rest is for the upstream caller, which may do without the result or ask another server. TestOutage_Inbound has the table behind it.
const inboundShare = 0.75

// connectWait returns how the call waits for a connection before an extra attempt.
func (c *call) connectWait() attempts.ConnectWait {
	if waits, says := c.saysWaitForReady(); says {
		return attempts.ConnectWait{FailFast: !waits}
	}
	wait := c.policy.MaxConnectionWait()
	is := attempts.ConnectWait{Longest: wait, MaxOutage: attempts.MaxOutage}
	if c.set.Deadline < attempts.Never && inbound(c.ctx) != nil {
		is.Longest = min(wait, time.Duration(inboundShare*float64(c.set.Deadline-c.start)))
	}
	return is
}

// isSafe reports whether the call may be made twice: its caller, its key, or its entry says so.
func (c *call) isSafe() bool {
	return c.flags&safe != 0 || c.key != "" && keyCounts(c.policy) || c.entry.safe
}

// stayOff makes a mode that forbids further attempts apply to the rest of the call. The driver's lock must be held.
func (c *call) stayOff(now *attempts.Now) {
	if c.off && now.Off == "" {
		now.Off = policy.ReasonModeOff
	}
	c.off = c.off || now.Off == policy.ReasonModeOff
}

// mode returns the call's current mode.
func (c *call) mode() policy.Mode {
	if c.deciding() && c.off {
		return policy.ModeOff
	}
	return c.entry.mode
}

// reasonGone returns why the caller no longer waits for the response, or "". A deadline counts as soon as it
// has passed: gRPC and the server apply it by their own clocks.
func (c *call) reasonGone(now attempts.Now) policy.Reason {
	deadline, limited := c.ctx.Deadline()
	switch err := c.ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded), err == nil && limited && !now.Wall.Before(deadline):
		return policy.ReasonDeadlineExceeded
	case err != nil:
		return policy.ReasonCancelled
	case now.Closed:
		return policy.ReasonClosed
	default:
		return ""
	}
}

// saysWaitForReady returns the caller's WaitForReady option, if there is one. The last option applies.
func (c *call) saysWaitForReady() (waits, says bool) {
	for _, o := range slices.Backward(c.options.caller) {
		if o, ok := promoted(o).(grpc.FailFastCallOption); ok {
			return !o.FailFast, true
		}
	}
	return false, false
}

// closed reports whether the connection is closed.
func closed(cc *grpc.ClientConn) bool {
	return cc != nil && cc.GetState() == connectivity.Shutdown
}
