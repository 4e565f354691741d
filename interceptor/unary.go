// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/methods"
)

// coexistence is whether gRPC may retry beside us.
type coexistence bool

const (
	alone      coexistence = true  // grpc.WithDisableRetry is set
	besideGRPC coexistence = false // nobody knows
)

func (r *Retrier) unary(with coexistence) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		a, _ := unaryAttempts.Get().(*unaryAttempt)
		of, p, options, flags := r.read(cc, method, opts, &a.attemptOptions)
		if flags&disabled != 0 {
			a.release()
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		invoke = r.keepBuffers(p, &options, flags, req, invoke)
		if r.observers.Load().starts {
			ctx = r.startCall(ctx, method, cc, p, &options)
		}
		ctx = options.assignCriticality(r.withBackends(ctx, cc, p, options.maxAttempts, flags), p)
		b, start := r.budgetFor(of, p, cc, method, &options), clock.Now()
		known := r.knownFor(of, p, cc, method, &options, start)
		adopted := flags&fast != 0 && !r.watched && !r.observers.Load().attempts && !r.leftRunning.Load()
		running, left := 1, attempts.Never
		if adopted && known.Any() {
			left = timeLeft(ctx, start)
			running = known.Admit(start, left)
		}
		refused := running == 0
		first := attempts.Answer{Left: left, Running: running, Accepted: true}
		var err error
		if adopted = adopted && !refused; adopted { // fast path: no call state until an attempt fails
			err = invokeFirst(ctx, method, req, reply, cc, invoke, &options, &a.attemptOptions, b, &known, first, start)
		}
		if adopted && err == nil {
			r.outer.succeeded(method, req)
			if known.WouldRefuse() {
				r.notifyWouldRefuse(ctx, method, cc, p, &options)
			}
			if options.notify || r.observers.Load().calls {
				r.notifySuccess(ctx, method, cc, p, start, &a.attemptOptions, &options)
			}
			a.release()
			return nil
		}
		u, _ := unaries.Get().(*unary)
		u.retrier, u.ctx, u.cc, u.method, u.policy, u.budget = r, ctx, cc, method, p, b
		u.options, u.flags, u.with, u.start, u.outside = options, flags, with, start, outside{ctx, req}
		u.known, u.running, u.turned = known, running, refused
		u.req, u.reply, u.invoke, u.first = req, reply, invoke, a
		err = u.run(adopted, err)
		u.recycle(err)
		return err
	}
}

// invokeFirst makes the first attempt of a call, which has been admitted, and tells the budget of the call's start and,
// unless it has failed, budget and admission of its end.
func invokeFirst(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options *callOptions, a *attemptOptions, b balance.Budget, known *methods.Known, answer attempts.Answer, start time.Duration,
) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		known.Left(start, attempts.Lost{}) // an inner interceptor panics, or the budget
		b.Finish(clock.Now(), balance.EndFailed)
	}()
	b.Start(start)
	err = invoke(firstAttempt(ctx), method, req, reply, cc, options.forAttempt(a)...)
	returned = true
	if err != nil {
		return err
	}
	if known.Any() {
		now := clock.Now()
		if known.Admits() {
			if u := utilization(a.trailer); u > 0 {
				known.Reported(now, u)
			}
		}
		answer.Took = now - start
		known.Answered(now, answer)
	}
	b.Finish(start, balance.EndAtOnce)
	return err
}

// unary drives the engine of a unary call: one whose first attempt has failed, or that has more to it than attempts.
//
// The caller's goroutine makes the first attempt, and every one that an event in it asks for, with the caller's reply.
// The timer's goroutine makes those that are sent beside others, each with a reply of its own. While nothing runs, the
// caller's goroutine waits for the next attempt; so a call that is answered before the timer fires starts no goroutine.
//
// Inner interceptors, codecs, messages, the classifier and observers run without the lock. Budget and breaker run under it.
type unary struct {
	call

	req, reply any // the caller's
	invoke     grpc.UnaryInvoker
	first      *unaryAttempt

	mu       sync.Mutex       // guards the engine, and all below
	attempts []*unaryAttempt  // by their numbers
	space    [2]*unaryAttempt // of attempts, for most calls
	due      time.Duration    // when the engine is to be woken
	watch    bool             // it is to be woken by a change of the connection's state, too
	events   []func()         // what observers are still to be told
	waiting  [2]func()        // of events, for most calls
	telling  bool             // a goroutine tells them
	hedging  hedging
}

// unaries that are over are used again, but for those that a goroutine of the timer's may still see.
var unaries = sync.Pool{New: func() any {
	u := new(unary)
	u.hedging.fires = u.fire
	return u
}}

// recycle lets another call use u.
func (u *unary) recycle(err error) {
	if err == nil && len(u.attempts) == 1 {
		u.first.release()
	}
	u.mu.Lock()
	seen := u.hedging.seen
	u.mu.Unlock()
	if !seen {
		*u = unary{hedging: hedging{fires: u.hedging.fires}}
		unaries.Put(u)
	}
}

// unaryAttempt is one attempt of a unary call.
type unaryAttempt struct {
	attempt

	opts  []grpc.CallOption
	reply any  // nil until it is sent
	own   bool // the reply is not the caller's
	runs  bool // it has been sent, and has not returned
}

// unaryAttempts that have succeeded are used again, so that success allocates nothing. One that has failed is
// not: an inner interceptor may have left something behind that still writes to it.
var unaryAttempts = sync.Pool{New: func() any { return newUnaryAttempt() }}

func newUnaryAttempt() *unaryAttempt {
	a := new(unaryAttempt)
	a.init()
	return a
}

// release lets another call use the attempt.
func (a *unaryAttempt) release() {
	a.reset()
	a.reply, a.own = nil, false
	unaryAttempts.Put(a)
}

// run makes attempts in the caller's goroutine until the call is over. If it is adopted, its first attempt has failed
// with err.
func (u *unary) run(adopted bool, err error) error {
	var a *unaryAttempt
	defer func() { u.leave(a) }()
	if adopted {
		a = u.ended(u.adopted(), err)
	} else {
		a = u.started()
	}
	for {
		for a != nil {
			a = u.ended(a, u.try(a))
		}
		if a = u.await(); a == nil {
			return u.deliver()
		}
	}
}

// started starts the engine, and returns the first attempt; nil if the call is refused.
func (u *unary) started() *unaryAttempt {
	u.prepareHedging()
	return u.locked(func() *unaryAttempt {
		u.attempts, u.events = u.space[:0], u.waiting[:0]
		now := u.now()
		return u.act(u.begin(now), now, true)
	})
}

// adopted starts the engine, and returns the first attempt, which was made without it.
func (u *unary) adopted() *unaryAttempt {
	u.prepareHedging()
	return u.locked(func() *unaryAttempt {
		u.adopt(u.now())
		a := u.first
		a.number, a.began, a.ctx, a.cancel, a.reply = 1, u.start, u.ctx, func() {}, u.reply
		u.attempts, u.events = append(u.space[:0], a), u.waiting[:0]
		return a
	})
}

// locked runs f with the lock, and then, without it, tells observers what has happened.
func (u *unary) locked(f func() *unaryAttempt) *unaryAttempt {
	next, events := u.lockedOnly(f)
	if events {
		u.notify()
	}
	return next
}

func (u *unary) lockedOnly(f func() *unaryAttempt) (next *unaryAttempt, events bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	next = f()
	return next, len(u.events) > 0
}

// try makes an attempt.
func (u *unary) try(a *unaryAttempt) error {
	a.runs = true
	switch {
	case a.own:
		a.reply = u.hedging.replies.newMessage()
	case a.number > 1:
		clearReply(u.reply)
		fallthrough
	default:
		a.reply = u.reply
	}
	err := u.invoke(a.ctx, u.method, u.req, a.reply, u.cc, a.opts...)
	a.runs = false
	return err
}

// ended reports the end of an attempt, and returns the one that the goroutine is to make now; nil: none.
func (u *unary) ended(a *unaryAttempt, err error) *unaryAttempt {
	defer a.cancel()
	if u.overOrAdapted(err) {
		return nil
	}
	r := u.result(&a.attempt, a.reply, err, u.now())
	if err != nil && u.mayStillRun(a) {
		r.Final = true
	}
	return u.locked(func() *unaryAttempt {
		now := u.now()
		step := u.call.ended(&a.attempt, r, now)
		next := u.act(step, now, !a.own)
		if u.retrier.observers.Load().attempts {
			e, r, ctx := u.attemptEvent(&a.attempt, err, step.Place), u.retrier, u.ctx
			u.queue(func() { r.notify(ctx, e, tellAttempt) })
		}
		u.queue(u.eventsOf(step, &a.attempt, err))
		return next
	})
}

// overOrAdapted reports whether a panic has ended the call. If not, and an attempt has failed with err, it takes a policy
// that has come late: before that, no attempt runs beside the first.
func (u *unary) overOrAdapted(err error) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.engine.Over() {
		return true
	}
	if err != nil && u.catchUp() {
		u.limit()
		u.prepareHedging()
		u.adapt(u.now())
	}
	return false
}

// queue has observers told by tell; nil: of nothing. u.mu must be held.
func (u *unary) queue(tell func()) {
	if tell != nil {
		u.events = append(u.events, tell)
	}
}

// notify tells observers what has happened, one event after the other, unless another goroutine does.
func (u *unary) notify() {
	for event := u.nextEvent(); event != nil; event = u.nextEvent() {
		u.tell(event)
	}
}

func (u *unary) nextEvent() (event func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.telling || len(u.events) == 0 {
		return nil
	}
	event, u.events, u.telling = u.events[0], u.events[1:], true
	return event
}

// tell runs event. If that panics, the next event can still be told.
func (u *unary) tell(event func()) {
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.telling = false
	}()
	event()
}

// mayStillRun reports whether attempt a, which an inner interceptor has returned from, may yet write into the caller's
// reply: gRPC has not ended it, and nobody can tell whether it has begun. From then on, the attempts of this Retrier have
// replies of their own, where that is possible, so that they may be followed by others.
func (u *unary) mayStillRun(a *unaryAttempt) bool {
	if a.own || a.done || u.cc == nil {
		return false
	}
	u.retrier.leftRunning.Store(true)
	return true
}

// await returns the next attempt that the caller's goroutine is to make; nil when the call is over. As long as other
// goroutines make attempts, it is they who bring the call on.
func (u *unary) await() *unaryAttempt {
	for {
		due, watch, over := u.awaitOthers()
		if over {
			return nil
		}
		u.sleep(due, watch)
		if a := u.locked(func() *unaryAttempt { return u.woken(true) }); a != nil {
			return a
		}
	}
}

// awaitOthers returns when no other goroutine makes attempts, with what the call waits for then.
func (u *unary) awaitOthers() (due time.Duration, watch, over bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.hedging.goroutines > 0 {
		u.hedging.changed.Wait()
	}
	return u.due, u.watch, u.engine.Over()
}

// woken wakes the engine, and returns the attempt that the goroutine is to make now; nil: none. u.mu must be held.
func (u *unary) woken(here bool) *unaryAttempt {
	now := u.now()
	step := u.wake(now)
	next := u.act(step, now, here)
	u.queue(u.eventsOf(step, nil, nil))
	return next
}

// act does what a step says, but for notifying observers. It returns the attempt that the goroutine is to make: here in
// the caller's, with the caller's reply, or beside that. u.mu must be held.
func (u *unary) act(step attempts.Step, now attempts.Now, here bool) (next *unaryAttempt) {
	for _, n := range step.Cancel {
		u.attempts[n-1].cancel()
	}
	if step.Send > 0 {
		next = u.send(step.Send, now, here)
	}
	u.due, u.watch = step.Wake, step.Watch
	u.setTimer(now)
	return next
}

// send prepares an attempt. u.mu must be held.
func (u *unary) send(n int, now attempts.Now, here bool) *unaryAttempt {
	a := u.first
	if n > 1 {
		a = newUnaryAttempt()
		u.options.header = true // from now on, they may bring the server's word
	}
	a.opts = u.assign(&a.attempt, n, now)
	a.cancel = func() {}
	if u.policy.Parallel() || u.policy.PerAttemptTimeout() > 0 {
		a.ctx, a.cancel = context.WithCancel(a.ctx)
	}
	a.own = !here || u.retrier.leftRunning.Load() && u.hedging.replies.makes()
	u.attempts = append(u.attempts, a)
	return a
}

// deliver gives the caller the answer. Nothing runs any more.
func (u *unary) deliver() error {
	u.hedging.caught.rethrow()
	end, reported := u.engine.End(), &unreported
	if end.Answer > 0 {
		a := u.attempts[end.Answer-1]
		reported = a.report()
		if a.own && end.Err == nil {
			copyReply(u.reply, a.reply)
		}
	}
	return u.finish(reported)
}

// leave lets go of what the call holds. If it is not over, a panic has cut it short: in attempt a, or, if that has
// returned, in what an event has called.
func (u *unary) leave(a *unaryAttempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.release()
	if u.engine.Over() {
		return
	}
	u.cut(a)
	for u.hedging.goroutines > 0 {
		u.hedging.changed.Wait()
	}
	u.engine.Abort(u.now())
}

// cut ends a call in which attempt a, or what an event has called, panics: what else runs is cancelled. u.mu must be held.
func (u *unary) cut(a *unaryAttempt) {
	var step attempts.Step
	if a != nil && a.runs {
		step = u.endPanicked(a)
		a.cancel()
	} else {
		step = u.engine.Abort(u.now())
	}
	for _, n := range step.Cancel {
		if n <= len(u.attempts) { // else it was about to be sent when an option for it has panicked
			u.attempts[n-1].cancel()
		}
	}
	u.hedging.stopTimer()
}

// endPanicked has the engine take in an attempt that has panicked. If a callback of that panics too, the call is over, and
// only the first panic goes on.
func (u *unary) endPanicked(a *unaryAttempt) (step attempts.Step) {
	defer func() {
		if p := recover(); p != nil {
			step = u.engine.Abort(u.now())
		}
	}()
	return u.engine.Ended(a.number, attempts.Result{Panicked: true}, u.now())
}
