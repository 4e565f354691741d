// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// unary is a unary call, a local variable of the caller's goroutine: nothing stores its address. runOn, runAsked and runDriven work on a
// copy, so that only calls that need the engine are on the heap. ARCHITECTURE.md draws the ways that a call can take.
type unary struct {
	call
	unaryMessages

	invoke grpc.UnaryInvoker
}

func (r *Retrier) unary(retries grpcRetries) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if !r.made() {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		var u unary
		u.retrier, u.cc, u.method, u.grpcRetries = r, cc, method, retries
		u.request, u.reply, u.invoke = req, reply, invoke
		u.inSequence = true
		options := newAttemptOptions(r.observers.Load().ofCalls)
		u.readRequest("", opts, options)
		if u.flags&disabled != 0 {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		if u.isPlain() {
			u.ctx = ctx
			u.noteNoDeadline()
			return u.runFirst(options)
		}
		u.notifyStart(ctx)
		if u.options.maxAttempts > 1 {
			u.keepMessages()
		}
		if r.repeats == nil {
			return u.run(options)
		}
		given := r.repeats.Copy(req)
		err := u.run(options)
		if err == nil {
			succeeded := u.call
			r.repeats.Unary(succeeded.second, given, req, reply, invoke)
		}
		return err
	}
}

// isPlain reports whether the call needs nothing before its first attempt. Most calls are plain.
func (u *unary) isPlain() bool {
	_, ofProtobuf := u.reply.(proto.Message) // else see keepReply
	return u.entry.plain && ofProtobuf && !u.options.codec && u.flags&keyed == 0 && !u.retrier.observers.Load().starts
}

// run makes the call. options are for its first attempt.
func (u *unary) run(options *attemptOptions) error {
	u.prepareContext()
	u.setDefaultTimeout()
	if u.cancel != nil {
		defer u.cancel() // after the observers, who may make calls
	}
	slowAt := u.slowAt()
	switch {
	case slowAt != attempts.Never:
		return u.runDriven(options, slowAt)
	case u.asksGates():
		return u.runAsked(options)
	default:
		return u.runFirst(options)
	}
}

// keepMessages prepares the caller's messages for a second attempt, and finds whether attempts can have replies of their own.
func (u *unary) keepMessages() {
	if u.codec() == codecGiving && protobufType(u.request) == nil {
		u.options.maxAttempts = 1
		if u.entry.mode != policy.ModeOff {
			u.retrier.warnOnce(&givenAway, u.entry.name, u.entry.name)
		}
		return
	}
	u.kept = u.keepReply(u.reply)
	if u.entry.policy.Parallel() {
		u.replies = u.replyType(u.reply)
		u.inSequence = u.replies == nil
		u.warnInSequence()
	}
	if u.entry.policy.Watched() && u.entry.mode == policy.ModeEnforce {
		u.copyRequest()
	}
}

// slowAt returns the time at which the first attempt is slow, or Never.
func (u *unary) slowAt() time.Duration {
	if !u.entry.policy.Watched() || u.options.maxAttempts < 2 {
		return attempts.Never
	}
	after, watched := attempts.SlowAfter(u.entry.policy, u.entry.responses, u.inSequence)
	deadline, limited := u.ctx.Deadline()
	if !watched || limited && time.Until(deadline) <= after { // later attempts have even less time
		return attempts.Never
	}
	return u.start + after
}

// runFirst makes the first attempt without the engine. If the attempt succeeds, the call is over. Only failures, callers with targets and
// observers need more of the attempt than its options.
func (u *unary) runFirst(options *attemptOptions) error {
	passed := u.options.forAttempt(options)
	err := u.invoke(u.ctx, u.method, u.request, u.reply, u.cc, passed...)
	observers := u.retrier.observers.Load()
	succeeded := err == nil && u.retrier.classifier == nil
	if succeeded && u.options.targets == noTargets && !observers.ofCalls {
		u.recordSuccess(options)
		return nil
	}
	a := u.firstAttempt(options, passed)
	a.reply = u.reply
	a.noteReport()
	if !succeeded {
		return u.runOn(a, err)
	}
	u.recordSuccess(options)
	if observers.ofCalls {
		u.noteSlowSuccess(&a)
		u.notifyAttempt(&a, nil)
	}
	return u.finish(&a.report)
}

// decidedUnary is a unary call that needs the engine after its first attempt: call, engine and attempt are one allocation.
type decidedUnary struct {
	unary
	state engineState
	first attempt
}

// runOn starts the engine with the first attempt, which has returned err.
func (u *unary) runOn(first attempt, err error) error {
	d := &decidedUnary{unary: *u, first: first}
	d.joinEngine(&d.state)
	return d.withoutDriver(&d.first, err)
}

// runAsked makes a call whose first attempt breaker or admission may refuse.
func (u *unary) runAsked(options *attemptOptions) error {
	decided := *u
	defer decided.abortUnlessOver()
	step := decided.startEngine(nil, attempts.Now{At: u.start})
	if step.Over {
		return decided.finish(&unreported)
	}
	first := decided.firstAttempt(options, decided.options.forAttempt(options))
	return decided.withoutDriver(&first, decided.try(&first))
}

// withoutDriver makes one attempt after the other, in the caller's goroutine and without a lock, until the call is over. The first one,
// a, has returned err.
func (u *unary) withoutDriver(a *attempt, err error) error {
	defer u.abortUnlessOver()
	made := append(make([]*attempt, 0, 2), a) // enough for most calls
	for {
		r, now := u.attemptResult(a, err)
		n, at := u.awaitNext(a, r, now)
		if n == 0 {
			return u.deliver(made)
		}
		a = u.laterAttempt(n, at)
		made = append(made, a)
		err = u.try(a)
	}
}

// try makes an attempt.
func (u *unary) try(a *attempt) error {
	switch {
	case a.ownReply:
		a.reply = u.replies.New().Interface()
	case a.number > 1:
		u.kept.restore()
		a.reply = u.reply
	default:
		a.reply = u.reply
	}
	err := u.invoke(a.ctx, u.method, u.requestOf(a), a.reply, u.cc, a.options...)
	a.noteReport()
	return err
}

// attemptResult returns the result of an attempt that has returned err.
func (u *unary) attemptResult(a *attempt, err error) (attempts.Result, attempts.Now) {
	now := u.now()
	a.noteEnd(now.At)
	r := u.resultOf(a, a.reply, err, u.contextEnded(a, err, now), now)
	u.warnOfFailure(a, err)
	return r, now
}

// deliver ends a call that the engine has ended, when none of its attempts runs.
func (u *unary) deliver(made []*attempt) error {
	end := u.end()
	if end.ResultOf == 0 {
		return u.finish(&unreported)
	}
	a := made[end.ResultOf-1]
	if end.Err == nil {
		u.takeReply(a)
	}
	return u.finish(&a.report)
}

// drivenUnary is a unary call whose attempts may be slow: the next one then follows in parallel, or in its place.
type drivenUnary struct {
	unary
	driver driver
	first  attempt // of the driver's
}

var _ driven = (*drivenUnary)(nil)

// runDriven makes a call whose first attempt is slow at slowAt.
func (u *unary) runDriven(options *attemptOptions, slowAt time.Duration) error {
	d := &drivenUnary{unary: *u}
	d.driver.init(&d.call, d)
	d.driver.run(func() *attempt { return d.begin(options, slowAt) })
	return d.deliver(d.driver.attempts)
}

// begin returns the first attempt, or nil if the call is refused. The engine starts before it only if breaker or admission are asked:
// most calls are answered before the timer fires, and need no engine.
func (d *drivenUnary) begin(options *attemptOptions, slowAt time.Duration) *attempt {
	step := attempts.Step{Wake: slowAt}
	if d.asksGates() {
		step = d.startEngine(nil, attempts.Now{At: d.start})
	}
	if step.Over {
		return nil
	}
	d.first = d.firstAttempt(options, d.options.forAttempt(options))
	a := &d.first
	a.ctx, a.cancel = context.WithCancel(a.ctx)
	d.driver.schedule(&step, d.start)
	return a
}

// newAttempt implements driven. An attempt in a goroutine of ours runs in parallel with others.
func (d *drivenUnary) newAttempt(n int, at time.Duration, ours bool) *attempt {
	a := d.laterAttempt(n, at)
	a.ownReply = ours
	a.ctx, a.cancel = context.WithCancel(a.ctx)
	return a
}

// try implements driven.
func (d *drivenUnary) try(a *attempt) (r attempts.Result, now attempts.Now, ended bool) {
	defer a.endContext()
	err := d.unary.try(a)
	if err == nil && d.succeedsAtOnce(a) {
		return r, now, false
	}
	r, now = d.attemptResult(a, err)
	return r, now, true
}

// succeedsAtOnce ends the call with the success of its first attempt, if the engine has not started: then nothing had to be decided.
func (d *drivenUnary) succeedsAtOnce(a *attempt) bool {
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	observers := d.retrier.observers.Load()
	if d.deciding() || d.retrier.classifier != nil || observers.attempts {
		return false
	}
	if d.driver.timer == nil || !d.driver.timer.Stop() {
		return false // its goroutine has started
	}
	d.recordSuccess(a.attemptOptions)
	if observers.ofCalls {
		d.noteSlowSuccess(a)
	}
	d.driver.serve()
	return true
}
