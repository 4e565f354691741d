// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

func (r *Retrier) unary(with coexistence) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		u, _ := unaries.Get().(*unary)
		u.retrier, u.cc, u.method, u.with = r, cc, method, with
		u.readRequest(opts, &u.first.attemptOptions, &u.last)
		if u.flags&disabled != 0 {
			u.recycle()
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		u.announce(ctx)
		u.req, u.reply, u.invoke = req, reply, invoke
		if u.options.maxAttempts > 1 {
			u.keepMessages()
		}
		if u.codec != nil {
			defer u.codec.encodeOnce(nil)
		}
		var given proto.Message
		if r.repeats != nil {
			given = r.repeats.Copy(req)
		}
		err := u.run()
		if r.repeats != nil && err == nil {
			r.repeats.Unary(u.second, given, req, reply, invoke)
		}
		if err == nil && u.reusable() {
			u.recycle()
		}
		return err
	}
}

// unary drives the engine of a unary call.
//
// The caller's goroutine makes the first attempt, and each attempt that follows from an event in it, with the caller's reply.
// The timer's goroutine makes parallel attempts, each with its own reply. While no attempt runs, the
// caller's goroutine waits for the next one. So a call that is answered before the timer fires starts no goroutine.
//
// Inner interceptors, codecs, messages, the classifier and observers run without the lock. Budget and breaker run under it, if
// the timer was set. Without it no other goroutine sees the call, and it needs no lock.
type unary struct {
	call
	own course // the call's
	unaryState
	unaryCourse

	mu      sync.Mutex       // guards the engine, and the state from attempts on; without entry.timed, only the queue of events uses it
	changed sync.Cond        // broadcasts when a timer goroutine ends
	fires   func()           // the timer's function
	first   unaryAttempt     // reused with the call
	later   *unaryAttempt    // reused with the call, once one had a second attempt
	last    lastSlot         // of the last call with this memory
	encoder encoder          // of requests
	space   [2]*unaryAttempt // of attempts
}

// unaryState is what every unary call needs.
type unaryState struct {
	req, reply any           // the caller's
	copied     encoded       // req before the first attempt; empty if attempts share it
	kept       keptReply     // reply before the first attempt
	codec      *messageCodec // of the attempts, if req or reply can't be copied; else nil
	invoke     grpc.UnaryInvoker
	attempts   []*unaryAttempt // by number
	shared     bool            // the timer was set, so that other goroutines may see the call
}

// unaryCourse is what a unary call needs when something must be decided, or may be.
type unaryCourse struct {
	due     time.Duration // the time to wake the engine
	watch   bool          // a change of the connection's state wakes it too
	events  eventQueue
	hedging hedging
}

// unaries is the pool of calls that have succeeded, so that success allocates nothing.
var unaries = sync.Pool{New: func() any {
	u := new(unary)
	u.course, u.fires, u.changed.L = &u.own, u.fire, &u.mu
	u.first.init()
	return u
}}

// reusable reports whether nobody else uses the call or its attempts: neither a timer's goroutine nor gRPC.
func (u *unary) reusable() bool {
	for _, a := range u.attempts {
		if a.left {
			return false
		}
	}
	return !u.shared || !u.deciding
}

// recycle lets another call use u. gRPC doesn't write targets when it has nothing to report, so recycle clears them. It keeps the
// options until others replace them: an inner interceptor that still reads them, though it should not, must not find nil.
func (u *unary) recycle() {
	if u.first.ctx = nil; u.later != nil {
		u.later.ctx = nil
	}
	for _, a := range u.attempts {
		a.cancel, a.reply, a.own, a.took, a.done = nil, nil, false, 0, false
		a.header, a.trailer, a.peer, a.retrier = nil, noTrailer, peer.Peer{}, nil // the next attempt may belong to another Retrier's call
		a.before = a.ends.Load()
	}
	switch {
	case u.deciding:
		*u.course = course{} // one assignment each: together, Go would copy them
		u.unaryCourse = unaryCourse{}
	case !u.alone || u.hedging.timer != nil || u.codec != nil:
		u.hedging = hedging{}
	}
	u.request = request{}
	u.unaryState = unaryState{}
	unaries.Put(u)
}

// run makes attempts in the caller's goroutine until the call is over.
func (u *unary) run() error {
	var a *unaryAttempt
	plain := false
	defer func() {
		if !plain {
			u.unwind(a)
		}
	}()
	a = u.begin()
	for {
		for a != nil {
			err := u.try(a)
			if plain = u.succeeded(a, err); plain {
				return nil
			}
			a = u.attemptEnded(a, err)
		}
		if a = u.await(); a == nil {
			return u.deliver()
		}
	}
}

// begin returns the first attempt, or nil if the call is refused. Only a breaker and admission are asked before it: they start the
// engine.
func (u *unary) begin() *unaryAttempt {
	if u.alone = true; u.entry.parallel || u.retrier.leftRunning.Load() {
		u.prepareHedging()
	}
	u.attempts = u.space[:0]
	if u.entry.asks {
		u.events.mu = &u.mu
		step := u.engine.Start(u.prepareSettings(), attempts.Now{At: u.start})
		return u.lockedOnly(func() *unaryAttempt { return u.act(&step, u.start, true) })
	}
	if u.entry.prepares || u.flags&keyed != 0 {
		u.prepareContext()
	}
	a := u.prepareAttempt(1, u.start, true)
	if u.entry.timed {
		u.watchFirst()
	}
	return a
}

// keepMessages prepares the caller's messages for a second attempt. Every attempt sends the same request:
//
//   - If attempts may run in parallel, those after the first have copies of the request, as it was when the call began: inner
//     interceptors of two attempts would change one message at the same time. All other policies do without, because an encoding may
//     cost 10 % of a call or more.
//   - A request that can't be copied is encoded once, if its codec may give its buffers away.
//
// And every attempt finds the reply as it was when the call began.
func (u *unary) keepMessages() {
	grpcsCodec := u.usesGRPCsCodec()
	u.kept.keep(u.reply, grpcsCodec)
	if u.entry.mode != policy.ModeEnforce {
		return
	}
	if u.entry.timed || u.retrier.leftRunning.Load() {
		u.encoder.chunk = u.encoder.chunk[:0]
		_ = u.encoder.encode(u.req, &u.copied)
	}
	if grpcsCodec {
		return
	}
	consumed := protobufType(u.req) == nil
	if !consumed && !u.kept.partly {
		return
	}
	if u.codec = newMessageCodec(u.options.caller); u.codec == nil {
		return // gRPC reports that there is none
	}
	if consumed {
		u.codec.encodeOnce(u.req)
	}
	if u.kept.partly {
		u.codec.watch(u.reply)
		u.hedging.replies = u.retrier.replyType(u.method, u.reply) // for attempts after one that has spoiled it
	}
	u.options.shared = append(u.options.shared, grpc.ForceCodecV2(u.codec))
}

// requestOf returns the request of attempt a.
func (u *unary) requestOf(a *unaryAttempt) any {
	if a.number == 1 || u.copied.of == nil {
		return u.req
	}
	m, err := u.copied.decode()
	if err != nil {
		return u.req // its messages are nested too deeply
	}
	return m
}

// spoiled reports whether an attempt has received something into the caller's reply that can't be undone.
func (u *unary) spoiled() bool {
	return u.kept.partly && u.codec != nil && u.codec.received.Load()
}

// watchFirst sets the timer for the first attempt of a call whose engine has not started.
func (u *unary) watchFirst() {
	after, watched := attempts.SlowAfter(u.policy, u.learner(), u.alone)
	deadline, limited := u.ctx.Deadline()
	if !watched || u.options.maxAttempts < 2 || limited && time.Until(deadline) <= after {
		return
	}
	u.due = u.start + after
	u.lockedOnly(func() *unaryAttempt { u.setTimer(u.start); return nil })
}

// succeeded ends a call whose attempt has succeeded, if no other runs and nobody else is to see it. It returns false otherwise.
func (u *unary) succeeded(a *unaryAttempt, err error) bool {
	observers := u.retrier.observers.Load()
	if err != nil || a.own || u.retrier.classifier != nil || observers.attempts {
		return false
	}
	if u.shared && !u.stopsTimer() {
		return false
	}
	a.noteLeft(u.cc, nil)
	switch {
	case a.left: // gRPC may still write its trailer and peer
		return false
	case u.deciding:
		r := attempts.Result{Outcome: decision.Outcome{Status: ok, Foreign: u.foreign(&a.attempt, false)}}
		u.engine.Ended(a.number, r, attempts.Now{At: clock.Now()})
	case u.foreign(&a.attempt, false):
	default:
		if u.known != nil && !u.untimed() {
			at := clock.Now()
			u.answeredAtOnce(at, at-u.start)
		}
		u.budget.Observe(clock.Time(u.start), budget.EventCallSucceeded)
	}
	if a.cancel != nil {
		a.cancel()
	}
	if u.options.notify || observers.any {
		_ = u.finish(&a.attemptOptions) // nil, as err is
	}
	u.cancelTimeout() // after the observers, who may make calls
	return true
}

// stopsTimer reports whether no other goroutine has seen the call, and none will.
func (u *unary) stopsTimer() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.deciding && u.hedging.timer != nil && u.hedging.timer.Stop()
}

// join starts the engine with the attempt that was made, unless it has started. u.mu must be held.
func (u *unary) join() {
	if u.deciding {
		return
	}
	u.events.mu = &u.mu
	u.fillSettings()
	step := u.engine.Join(&u.set, attempts.NewTiming(u.start, false))
	u.due, u.watch = step.Wake, step.Watch
}

// locked runs f with the lock, and then delivers the events without it.
func (u *unary) locked(f func() *unaryAttempt) *unaryAttempt {
	next := u.lockedOnly(f)
	u.events.tell(u.deliverNotice)
	return next
}

func (u *unary) lockedOnly(f func() *unaryAttempt) *unaryAttempt {
	if u.entry.timed {
		u.mu.Lock()
		defer u.mu.Unlock()
	}
	return f()
}

// attemptEnded reports the end of an attempt, and returns the one that the goroutine must make now, or nil.
func (u *unary) attemptEnded(a *unaryAttempt, err error) *unaryAttempt {
	defer a.stop()
	if u.panicked() {
		return nil
	}
	now := u.now()
	r := u.judge(&a.attempt, a.reply, err, u.local(&a.attempt, err, now), now)
	if err != nil && u.mayStillRun(a) {
		r.Final = true
	}
	if (err != nil || r.Again) && u.spoiled() && !u.hedging.replies.makes() {
		u.endSpoiled(&r)
	}
	a.noteLeft(u.cc, err)
	return u.locked(func() *unaryAttempt {
		step := u.reportEnd(&a.attempt, r, now)
		next := u.act(&step, now.At, !a.own)
		if u.retrier.observers.Load().attempts {
			u.events.push(notice{new(u.attemptEvent(&a.attempt, err)), tellAttempt})
		}
		u.events.push(u.noticesOf(&step, &a.attempt, err)...)
		return next
	})
}

// panicked reports whether a panic ended the call.
func (u *unary) panicked() bool {
	if u.shared {
		u.mu.Lock()
		defer u.mu.Unlock()
	}
	u.join()
	return u.engine.Over()
}

// await returns the next attempt that the caller's goroutine must make, or nil when the call is over. While other
// goroutines make attempts, they drive the call.
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

// awaitOthers waits until no other goroutine makes attempts, and returns what the call waits for then.
func (u *unary) awaitOthers() (due time.Duration, watch, over bool) {
	if u.shared {
		u.mu.Lock()
		defer u.mu.Unlock()
	}
	for u.hedging.goroutines > 0 {
		u.changed.Wait()
	}
	return u.due, u.watch, u.engine.Over()
}

// woken wakes the engine, and returns the attempt that the goroutine must make now, or nil. u.mu must be held.
func (u *unary) woken(here bool) *unaryAttempt {
	now := u.now()
	step := u.wake(now)
	next := u.act(&step, now.At, here)
	u.events.push(u.noticesOf(&step, nil, nil)...)
	return next
}

// act carries out a step, except the notification of observers. It returns the attempt that the goroutine must make: if here,
// the caller's goroutine, with the caller's reply; otherwise the timer's. u.mu must be held.
func (u *unary) act(step *attempts.Step, at time.Duration, here bool) (next *unaryAttempt) {
	for _, n := range step.Cancel {
		u.attempts[n-1].stop()
	}
	if step.Send > 0 {
		next = u.prepareAttempt(step.Send, at, here)
	}
	u.due, u.watch = step.Wake, step.Watch
	u.setTimer(at)
	return next
}

// deliver copies the response to the caller, when no attempt runs any more.
func (u *unary) deliver() error {
	u.hedging.caught.rethrow()
	end, reported := u.engine.End(), &unreported
	if end.Answer > 0 {
		a := u.attempts[end.Answer-1]
		reported = a.reported()
		if a.own && end.Err == nil {
			copyReply(u.reply, a.reply)
		}
	}
	return u.finish(reported)
}

// unwind releases the call's resources. If the call is not over, there was a panic: in attempt a, or, if that has
// returned, in a callback of an event.
func (u *unary) unwind(a *unaryAttempt) {
	if u.entry.timed {
		u.mu.Lock()
		defer u.mu.Unlock()
	}
	defer u.cancelTimeout()
	if a != nil {
		a.stop() // a breaker or budget may have panicked at its success
	}
	if u.engine.Over() {
		return
	}
	u.cut(a)
	for u.hedging.goroutines > 0 {
		u.changed.Wait()
	}
	u.engine.Abort(u.now())
}

// unaryAttempt is one attempt of a unary call.
type unaryAttempt struct {
	attempt

	opts  []grpc.CallOption
	reply any  // nil until it is sent
	own   bool // the reply is not the caller's
	left  bool // gRPC may still use its options, or write to their targets, in another goroutine
}

// noteLeft records whether a, which has returned with err, may still be in use: an inner interceptor may have returned without
// waiting for gRPC, and after the context's end, gRPC may be ending the attempt in another goroutine.
func (a *unaryAttempt) noteLeft(cc *grpc.ClientConn, err error) {
	failed := err != nil
	a.left = a.ctx.Err() != nil || failed && !answered(err) || (failed || cc != nil) && !a.ended()
}

// stop ends the attempt's context, if it has one of its own.
func (a *unaryAttempt) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}

// try makes an attempt.
func (u *unary) try(a *unaryAttempt) error {
	switch {
	case a.own:
		a.reply = u.hedging.replies.newMessage()
	case a.number > 1:
		u.kept.restore()
		fallthrough
	default:
		a.reply = u.reply
	}
	return u.invoke(a.ctx, u.method, u.requestOf(a), a.reply, u.cc, a.opts...)
}

// mayStillRun reports whether attempt a, from which an inner interceptor has returned, may still write into the caller's
// reply: gRPC has not ended it, and we don't know whether it has begun. From then on, attempts of this Retrier have
// their own replies, if possible, so that they can be retried.
func (u *unary) mayStillRun(a *unaryAttempt) bool {
	if a.own || a.done || u.cc == nil {
		return false
	}
	u.retrier.leftRunning.Store(true)
	return true
}

// prepareAttempt prepares an attempt. u.mu must be held.
func (u *unary) prepareAttempt(n int, at time.Duration, here bool) *unaryAttempt {
	a := &u.first
	if n > 1 {
		a = u.laterAttempt(n)
	}
	a.opts = u.assign(&a.attempt, n, at)
	if a.cancel = nil; u.entry.timed {
		a.ctx, a.cancel = context.WithCancel(a.ctx)
	}
	a.own = !here || (u.retrier.leftRunning.Load() || u.spoiled()) && u.hedging.replies.makes()
	u.attempts = append(u.attempts, a)
	return a
}

// laterAttempt returns the second attempt of a previous call, or a new one. u.mu must be held.
func (u *unary) laterAttempt(n int) *unaryAttempt {
	if n == 2 && u.later != nil {
		return u.later
	}
	a := new(unaryAttempt)
	a.init()
	if n == 2 {
		u.later = a
	}
	return a
}

// cut ends a call in which attempt a, or a callback of an event, panics, and cancels its other attempts. u.mu must be held.
func (u *unary) cut(a *unaryAttempt) {
	step := u.engine.Abort(u.now())
	if a != nil {
		a.stop()
	}
	for _, n := range step.Cancel {
		if n <= len(u.attempts) { // else an option of it panicked before it was sent
			u.attempts[n-1].stop()
		}
	}
	u.hedging.stopTimer()
}

// hedging is the state of a unary call with parallel attempts. The call's lock guards it.
type hedging struct {
	replies    messageType // of parallel attempts
	timer      *time.Timer // wakes the engine while attempts run; nil while it is not set
	goroutines int         // of the timer, for this call
	caught     caught      // by one of them
}

// prepareHedging allows parallel attempts if each can have its own reply.
func (u *unary) prepareHedging() {
	u.hedging.replies = u.retrier.replyType(u.method, u.reply)
	u.alone = !u.hedging.replies.makes()
}

// setTimer sets the timer to the engine's next time, as long as attempts run. u.mu must be held.
func (u *unary) setTimer(at time.Duration) {
	h, in := &u.hedging, u.due-at
	if u.deciding && u.engine.Running() == 0 || u.due == attempts.Never {
		h.stopTimer()
		return
	}
	if !u.shared { // the caller's goroutine sets it first, and so reads it without the lock
		u.shared = true
	}
	switch {
	case in <= 0: // as with streams, no timer
		h.stopTimer()
		go u.fires()
	case h.timer == nil:
		h.timer = time.AfterFunc(in, u.fires)
	default:
		h.timer.Reset(in)
	}
}

func (h *hedging) stopTimer() {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.timer = nil
}

// fire runs in the timer's goroutine. It makes the attempt that is due, and its immediate retries.
func (u *unary) fire() {
	var (
		a        *unaryAttempt
		returned bool
	)
	defer func() {
		// The caller's goroutine repeats a panic, as it would have happened without hedging.
		u.leaveBeside(a, !returned, recover())
	}()
	for a = u.fired(); a != nil; {
		a = u.attemptEnded(a, u.try(a))
	}
	returned = true
}

// fired returns the attempt that is due, or nil.
func (u *unary) fired() *unaryAttempt {
	return u.locked(func() *unaryAttempt {
		u.hedging.goroutines++
		if u.join(); u.engine.Running() == 0 { // the caller's goroutine is waiting
			return nil
		}
		return u.woken(false)
	})
}

// leaveBeside ends the timer's goroutine. If it has panicked, the caller's panics too after all attempts have ended.
func (u *unary) leaveBeside(a *unaryAttempt, panicked bool, with any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	h := &u.hedging
	h.goroutines--
	u.changed.Broadcast()
	if panicked {
		h.caught.note(with)
		u.cut(a)
	}
}
