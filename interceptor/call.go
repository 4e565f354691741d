// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/evidence"
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
	cc      *grpc.ClientConn   // nil for Do, and in tests that call an interceptor directly
	method  string
	entry   *entry
	options callOptions
	key     string        // the idempotency key; "" for none
	start   time.Duration // on the budgets' clock

	flags       callFlags
	grpcRetries grpcRetries
	slowAtOnce  bool // the call has succeeded at once, but its attempt was slow; only if there are observers
	inSequence  bool // attempts never run in parallel: no second reply can be made, or the application sends a stream
}

// grpcRetries is whether gRPC may retry in addition to us.
type grpcRetries bool

const (
	grpcRetriesOff grpcRetries = false // grpc.WithDisableRetry is set
	grpcMayRetry   grpcRetries = true  // unknown
)

// callFlags come from a call's options and its policy, before the first attempt.
type callFlags uint8

const (
	disabled         callFlags = 1 << iota // the call bypasses the Retrier
	safe                                   // the caller declares it idempotent
	keyed                                  // the caller asks for an idempotency key
	optional                               // the caller can do without the response
	byDefaultTimeout                       // the call's deadline is that of the default timeout
)

// readRequest reads the caller's options, and finds the entry of the call. Every call runs it. target is the target of Do, which has no
// connection. first is for the first attempt.
func (c *call) readRequest(target string, caller []grpc.CallOption, first *attemptOptions) {
	r, o := c.retrier, &c.options
	o.caller = caller
	o.shared = first.array[:optionsAdded]
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
	c.entry = r.entry(c.cc, target, c.method, o.policy, c.start)
	if o.maxAttempts < 1 {
		n := strconv.Itoa(o.maxAttempts)
		r.warnOnce(&noAttempts, n, n)
	}
	o.maxAttempts = max(min(c.entry.most, o.maxAttempts), 1)
	if o.unknown {
		o.maxAttempts = 1
	}
	settings := c.entry.settings.options
	if o.givesSettings {
		settings = c.entry.settings.optionsBeside(caller)
	}
	if len(settings) > 0 { // append of none would still call the runtime, in every call
		o.shared = append(o.shared, settings...)
	}
	o.peer = o.peer || r.observers.Load().ofCalls
	if c.entry.mode != policy.ModeEnforce { // then another library's retries don't multiply
		return
	}
	first.retrier = r
	if o.middlewareRetries {
		r.warnOnce(&middlewareOptions, c.entry.name, c.entry.name)
	}
}

// readOption reads an option of the caller's.
func (c *call) readOption(option grpc.CallOption) {
	o := &c.options
	switch targetOf(option).(type) {
	case grpc.HeaderCallOption:
		o.targets = headerTarget
		return
	case grpc.PeerCallOption:
		o.targets, o.peer = max(o.targets, someTargets), true
		return
	case grpc.TrailerCallOption:
		o.targets = max(o.targets, someTargets)
		return
	}
	if _, ok := option.(grpc.OnFinishCallOption); ok { // gRPC itself doesn't call embedded ones
		o.targets = max(o.targets, someTargets)
		return
	}
	switch option.(type) {
	case grpc.ForceCodecV2CallOption, grpc.ForceCodecCallOption, grpc.CustomCodecCallOption, grpc.ContentSubtypeCallOption:
		o.codec = true
	case grpc.FailFastCallOption, grpc.MaxSendMsgSizeCallOption, grpc.MaxRecvMsgSizeCallOption:
		o.givesSettings = true
	default:
		c.readOwn(option)
		o.middlewareRetries = o.middlewareRetries || ofMiddleware(option)
		if !repeatable(option) {
			o.unknown = true
			kind := fmt.Sprintf("%T", option)
			c.retrier.warnOnce(&unknownOption, kind, kind)
		}
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
		c.options.policy = cmp.Or(option.policy, c.retrier.single)
	case maxAttemptsOption:
		c.options.maxAttempts = option.n
	case idempotentOption:
		c.flags |= safe
	case keyOption:
		c.flags |= keyed
	case optionalOption:
		c.flags |= optional
	}
}

// notifyStart notifies observers of the call's start, and sets its context: with what they add, and a record of the backends that it uses.
func (c *call) notifyStart(ctx context.Context) {
	r := c.retrier
	if r.observers.Load().starts {
		ctx = r.startCall(ctx, c.event(0, codes.OK, nil))
	}
	c.ctx = ctx
	if hook := c.entry.rules.elsewhere; hook != nil && c.cc != nil && c.options.maxAttempts > 1 {
		c.ctx = hook.NewContext(ctx)
	}
}

// prepareContext sets the call's key and timeout.
func (c *call) prepareContext() {
	if header := c.entry.declares.IdempotencyKey(); header != "" || c.flags&keyed != 0 {
		c.ctx, c.key = withKey(c.ctx, header, c.options.caller)
	}
	if timeout := c.entry.policy.Timeout(); timeout > 0 { // it counts from the call's start
		c.ctx, c.cancel = context.WithTimeout(c.ctx, timeout-(clock.Now()-c.start))
	}
}

// cancelTimeout ends the context of the policy's timeout when the call is over.
func (c *call) cancelTimeout() {
	if c.cancel != nil {
		c.cancel()
	}
}

// isSafe reports whether the call may be made twice: its caller, its key, or its entry says so.
func (c *call) isSafe() bool {
	return c.flags&safe != 0 || c.key != "" && keyCounts(c.entry.declares) || c.entry.safe
}

// asksGates reports whether the engine starts before the first attempt, because it asks a breaker or admission.
func (c *call) asksGates() bool { return c.entry.gate != nil || c.retrier.breaker != nil }

// target returns the canonical target of the call's connection.
func (c *call) target() string { return c.entry.target }

// recordSuccess tells method and budget of a call that has succeeded at once: without the engine, with its first attempt, whose options are o.
func (c *call) recordSuccess(o *attemptOptions) {
	c.noteSucceeded(&atOnce)
	if c.cc != nil && !o.answered() { // an inner interceptor has made the response
		return
	}
	if c.entry.responses != nil {
		at := clock.Now()
		c.recordResponse(at, at-c.start)
	}
	c.entry.budget.Observe(clock.Time(c.start), budget.EventCallSucceeded)
}

// noteSlowSuccess finds, for observers, whether the attempt of a call that has succeeded at once was slow.
func (c *call) noteSlowSuccess(a *attempt) {
	a.took = clock.Now() - c.start
	a.slow = c.speedOfFirst(a.took) != evidence.Fast
	c.slowAtOnce = a.slow
}

// recordResponse tells the method of the response to a call that has succeeded at once.
func (c *call) recordResponse(at, took time.Duration) {
	c.entry.responses.Answered(at, evidence.Answer{Began: c.start, Took: took, Speed: c.speedOfFirst(took), Accepted: true})
}

// speedOfFirst returns the speed of the response to a call that has succeeded at once.
func (c *call) speedOfFirst(took time.Duration) evidence.Speed {
	after, _ := attempts.SlowAfter(c.entry.policy, c.entry.responses, false)
	if after > 0 && took <= after { // whatever time is left
		return evidence.Fast
	}
	left := attempts.Never
	if deadline, ok := c.ctx.Deadline(); ok {
		left = deadline.Sub(clock.Time(c.start))
	}
	return evidence.LimitsOf(after, left).SpeedOf(took)
}

// finish notifies caller and observers of the call's end, and returns its error. It fills the caller's targets from the
// attempt that is the response.
func (c *call) finish(reported *report) error {
	err := c.giveResult(reported)
	c.notifyEnd(err)
	c.options.tellFinished(err)
	return err
}

// giveResult gives a call that is over to its caller: it fills the caller's targets from the attempt that is the response, and returns the
// error. It tells the incoming call if this one has given up or succeeded. It runs no user code.
func (c *call) giveResult(reported *report) error {
	c.options.deliver(reported)
	end := c.end()
	failure := c.failure(end)
	switch {
	case failure != nil:
		failure.gaveUp = c.noteGaveUp(end)
		return failure
	case end.FailsOK:
		c.noteGaveUp(end)
	default:
		c.noteSucceeded(end)
	}
	return nil
}

// noteGaveUp records in the incoming call that a call made in its context has given up, and reports whether that is so.
func (c *call) noteGaveUp(end *attempts.End) bool {
	if c.flags&optional != 0 || c.mode() != policy.ModeEnforce || !end.GaveUp() {
		return false
	}
	in := inbound(c.ctx)
	if in == nil {
		return false
	}
	in.noteGaveUp(c.entry.name, clock.Now())
	return true
}

// noteSucceeded records in the incoming call that a call made in its context has succeeded.
func (c *call) noteSucceeded(end *attempts.End) {
	if allMarks.Load() == 0 || end.Reason != policy.ReasonSucceeded {
		return
	}
	if in := inbound(c.ctx); in != nil {
		in.noteSucceeded(c.entry.name, c.start)
	}
}

// notifyEnd notifies observers of a call that has ended with err.
func (c *call) notifyEnd(err error) {
	outerRetry := c.noteOuter(err)
	if c.end().WouldRefuse {
		c.notifyWouldRefuse()
	}
	c.notifyCall(c.end(), err, outerRetry)
}
