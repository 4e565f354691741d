// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// call is a call that more than one attempt may be made for: one whose first attempt has failed, or
// may time out, or that observers watch.
type oldCall struct {
	*oldAttempt // the running one

	policy  *policy.Policy
	options callOptions
	flags   callFlags
	retrier *Retrier
	ctx     context.Context //nolint:containedctx // a call lives no longer than its context
	cc      *grpc.ClientConn
	method  string
	alone   bool // gRPC's own retries are known to be off
	gates   gates
	state   policy.Call
	start   time.Duration // on the budgets' clock
	waited  time.Duration // in backoffs
	key     string        // the idempotency key, if the call sends one
	verdict Verdict       // of the classifier, about the attempt that has ended
	over    bool          // it has ended, and nothing is held any more

	answered time.Duration // when a stream brought its first message; 0 for unary calls
}

// prepare makes c, which has its options only, a call that is about to make its first attempt, a, or has just
// made it.
func (c *oldCall) prepare(r *Retrier, method string, cc *grpc.ClientConn, with coexistence, b budget.Budget, start time.Duration, a *oldAttempt) {
	a.number, a.began = 1, start
	c.oldAttempt, c.retrier, c.method, c.cc, c.alone, c.start = a, r, method, cc, with == alone, start
	c.gates.budget, c.gates.slow, c.gates.room = b, budget.KindTimeout, &r.waitLimit
	c.state.Attempts, c.state.MaxAttempts = 1, c.options.maxAttempts
}

// begin is what a call does before its first attempt. It returns the error of a call that is refused.
func (c *oldCall) begin() error {
	c.ctx, c.key = withKey(c.ctx, c.policy.IdempotencyKey(), c.options.caller)
	if find := c.retrier.breaker; find != nil {
		c.gates.breaker = find(target(c.cc), c.method)
	}
	if refused := c.gates.admit(); refused != nil {
		c.gates.budget = budget.Unlimited // a call that is not made earns nothing
		c.state.Attempts = 0
		return c.end(refused, nil, policy.Decision{Reason: policy.ReasonBreakerOpen})
	}
	c.gates.budget.Start(c.start)
	c.gates.equip(c.oldAttempt)
	return nil
}

// limit gives the call its policy's timeout, which counts from its start.
func (c *oldCall) limit() context.CancelFunc {
	timeout := c.policy.Spec().Timeout
	if timeout == 0 {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout-(budget.Now()-c.start))
	c.ctx = ctx
	return cancel
}

// another is an attempt after the first, which is sent now.
func (c *oldCall) another() *oldAttempt {
	a := newOldAttempt()
	a.number, a.began = c.state.Attempts, budget.Now()
	c.gates.equip(a)
	return a
}

// optionsAgain are the options of an attempt after the first.
func (c *oldCall) optionsAgain(a *oldAttempt) []grpc.CallOption {
	if _, limited := c.ctx.Deadline(); !limited || !c.policy.WaitForReadyOnRetry() {
		return c.options.forAttempt(&a.attemptOptions)
	}
	for _, o := range c.options.caller {
		if _, own := promoted(o).(grpc.FailFastCallOption); own {
			return c.options.forAttempt(&a.attemptOptions)
		}
	}
	return c.options.forAttempt(&a.attemptOptions, grpc.WaitForReady(true))
}

// attempt is the running attempt of a call.
type oldAttempt struct {
	attemptOptions

	number int           // 1 is the first
	began  time.Duration // on the budgets' clock
	permit grant         // that paid for it, until it is settled
	done   func(error)   // tells the breaker how it has ended; nil without one, and once told
}

// attempts that have succeeded are used again, so that success allocates nothing. One that failed is
// not: an inner interceptor may have left something behind that still writes to it.
var oldAttempts = sync.Pool{New: func() any { return newOldAttempt() }}

func newOldAttempt() *oldAttempt {
	a := new(oldAttempt)
	a.init()
	return a
}

// release lets another call use the attempt.
func (a *oldAttempt) release() {
	a.reset()
	oldAttempts.Put(a)
}

// settled is what gRPC reports of an attempt that has failed: nothing, if it has not ended it yet and
// so may still write there, as when the error comes from an inner interceptor.
func (a *oldAttempt) settled() *oldAttempt {
	if a.ended.Load() {
		return a
	}
	silent := newOldAttempt()
	silent.number, silent.began, silent.permit, silent.done = a.number, a.began, a.permit, a.done
	return silent
}

// judge asks the classifier, and reports whether the attempt counts as failed. One that was abandoned does,
// and nobody is asked.
func (c *oldCall) judge(reply any, err error, w *watch) (failed bool) {
	c.verdict = VerdictByCode
	if err != nil && w.abandoned() && !answered(err) {
		return true
	}
	if c.retrier.classifier != nil && c.policy.MaxAttempts() > 1 {
		c.verdict = c.retrier.classifier(c.ctx, c.method, reply, err)
	}
	return err != nil || c.verdict == VerdictRetry || c.verdict >= verdictAs
}

// outcome is what an attempt that ended with err means to the policy.
func (c *oldCall) outcome(err error) policy.Outcome {
	out := policy.Outcome{
		Status: status.New(codes.OK, ""), Header: c.header, Trailer: c.trailer,
		Again: c.verdict == VerdictRetry, As: c.verdict.code(),
		Final: c.verdict == VerdictFinal || errors.Is(c.ctx.Err(), context.Canceled) || closed(c.cc),
	}
	if err == nil {
		return out // the classifier has said "not yet"
	}
	st, ok := status.FromError(err)
	out.Status = st
	c.retrier.warnOuterRetries(c.ctx)
	multiplied := c.retrier.multiplied(coexistence(c.alone), c.cc, c.method)
	out.Unsent = c.unsent() && st.Code() == codes.Unavailable && !multiplied
	// An error without a status comes from an interceptor, not from a server.
	nobodys := !ok || st.Code() == codes.OK
	out.Final = out.Final || nobodys && c.verdict == VerdictByCode || deterministic(st.Code(), err) || c.unsent() && dropped(st.Code(), err)
	return out
}

// observeAttempt tells of an attempt that has ended.
func (c *oldCall) observeAttempt(err error, place Place) {
	if !c.retrier.tellsAttempts {
		return
	}
	elapsed := budget.Now() - c.began
	e := AttemptEvent{
		Method: c.method, Target: target(c.cc), Number: c.number,
		Start: time.Now().Add(-elapsed), Elapsed: elapsed, Code: status.Code(err), Err: err,
		Peer: c.from().Addr, Place: place, IdempotencyKey: c.key,
	}
	for _, o := range c.retrier.observers {
		if o.Attempt != nil {
			o.Attempt(c.ctx, e)
		}
	}
}

// observeDecision tells what follows an attempt that has failed or timed out.
func (c *oldCall) observeDecision(out *policy.Outcome, d policy.Decision) {
	e := DecisionEvent{
		Method: c.method, Target: target(c.cc), Attempt: c.number,
		Code: out.Status.Code(), TimedOut: out.TimedOut, Decision: d,
	}
	for _, o := range c.retrier.observers {
		if o.Decision != nil {
			o.Decision(c.ctx, e)
		}
	}
}

// callEvent is the end of a call.
func (c *oldCall) callEvent(err error, reason policy.Reason) CallEvent {
	e := callEvent(c.method, c.cc, c.state.Attempts, c.start, c.waited, err, reason)
	e.IdempotencyKey = c.key
	return e
}

// catchUp looks again for the policy of a call that began before its connection had received any service
// config; the first attempt has waited for it. It reports whether there is one.
func (c *oldCall) catchUp() bool {
	if c.flags&configPending == 0 {
		return false
	}
	c.flags &^= configPending
	f := c.retrier.lookup(c.cc, c.method, true)
	if f.pending {
		return false
	}
	if f.policy == nil {
		f.policy = c.retrier.single
	}
	c.policy, c.state.MaxAttempts = f.policy, min(c.state.MaxAttempts, f.maxAttempts)
	c.state.InPlace = true // it was not begun as a race
	if b := c.retrier.budgetFor(f.rules, f.policy, c.cc, c.method); b != c.gates.budget {
		c.gates.budget.Finish(budget.Now(), budget.EndFailed)
		b.Start(c.start)
		c.gates.budget = b
	}
	return true
}

// catchUp does so for a stream that has just been opened.
func (s *stream) catchUp() {
	if s.oldCall.catchUp() {
		s.end = both(s.end, s.limit())
	}
}

func both(outer, inner context.CancelFunc) context.CancelFunc {
	if outer == nil {
		return inner
	}
	return func() {
		inner()
		outer()
	}
}

// spot is the place of one call; nobody else touches it.
type spot struct {
	room  *waitLimit
	taken bool
}

// Enter implements [policy.WaitLimit].
func (p *spot) Enter() bool {
	p.taken = p.taken || p.room.Enter()
	return p.taken
}

// Leave implements [policy.WaitLimit].
func (p *spot) Leave() {
	if p.taken {
		p.room.Leave()
		p.taken = false
	}
}

// circuit is what one call has to do with its breaker.
type circuit struct {
	breaker attempts.Breaker // nil if it has none
	done    func(error)      // for the attempt that is to follow; nil without leave
}

var _ policy.Breaker = (*circuit)(nil)

// Open implements [policy.Breaker].
func (c *circuit) Open() bool { return c.breaker != nil && c.breaker.Open() }

// admit asks for leave to send an attempt.
func (c *circuit) admit() error {
	if c.breaker == nil {
		return nil
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return err
	}
	c.done = done
	return nil
}

// timedOut is the outcome of an attempt that has used up its per-attempt timeout and may still be
// running.
var timedOut = status.New(codes.DeadlineExceeded, "per-attempt timeout")

// errLeft is what a breaker is told of an attempt that a panic has cut short.
var errLeft = status.Error(codes.Unknown, "the attempt has panicked")
