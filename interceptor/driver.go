// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
)

// driver makes the attempts of a call that several goroutines share: the application's, some of ours, and gRPC's.
//
// The application's goroutine makes the first attempt, and each one that follows from the end of its own. A goroutine of ours, which the
// timer starts, makes the attempt that is due while others run, and those that follow from its end:
//
//	application   run ──► attempt 1 ──► its end ──► attempt 2 ──► … ──► waits for ours, and for what is due then ──► returns
//	ours                └─ it is slow ──► attempt next to it ──► its end ──► …
//
// So a call that is answered before its timer fires starts no goroutine. When run returns, no goroutine of ours makes an attempt; those
// of a unary call have ended.
//
// gRPC, inner interceptors, codecs, the classifier and observers run without the lock; budget, breaker and the record of the method run
// under it. A panic of theirs is never recovered: in the application's goroutine, what the call holds is released on the way up.
type driver struct {
	of    *call
	tries tries

	mu       lock       // guards the engine, and all below
	changed  sync.Cond  // broadcasts each change for which a goroutine may wait
	attempts []*attempt // in the order of sending
	ours     int        // how many goroutines of ours make attempts
	served   bool       // an attempt has what the application waits for
	timer    *time.Timer
	due      time.Duration // when to wake the engine
	watch    bool          // a change of the connection's state wakes it too
	notices  []notice      // that the goroutine with the lock tells observers when it has given it up
}

// notice is an event and the function of an observer that receives it.
type notice struct {
	event *Event
	told  func(*Observer) func(context.Context, Event)
}

// serve ends the wait of the application. The lock must be held.
func (d *driver) serve() {
	d.served = true
	d.stopTimer()
}

// tries are what a driver makes: attempts of a unary call, or of a stream up to what the application waits for.
type tries interface {
	// prepare returns attempt n, which the engine sends; ours says that a goroutine of ours makes it. The lock is held.
	prepare(n int, at time.Duration, ours bool) *attempt
	// try makes an attempt, without the lock. ended is false if a stream's attempt has won: the application goes on with it.
	try(a *attempt) (ended bool, err error)
	// takeResult returns the result of an attempt that has ended with err, without the lock, and ends its context.
	takeResult(a *attempt, err error) (attempts.Result, attempts.Now)
	// succeeded ends the call after the success of an attempt, if it can without the engine. The lock is held.
	succeeded(a *attempt) bool
	// join starts the engine with the first attempt, if it has not started. The lock is held.
	join()
}

func (d *driver) init(of *call, t tries) {
	d.of = of
	d.tries = t
	d.due = attempts.Never
	d.changed.L = &d.mu
}

// locked runs f with the lock, and then tells observers what has happened.
func (d *driver) locked(f func()) {
	var notices []notice
	func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		f()
		notices, d.notices = d.notices, nil
	}()
	for _, n := range notices {
		d.of.deliverNotice(n)
	}
}

// run makes attempts until one has what the application waits for, or the call is over. begin returns the first one to make, or nil if
// there is none now. It runs with the lock.
func (d *driver) run(begin func() *attempt) {
	returned := false
	defer func() {
		if !returned {
			d.unwind()
		}
	}()
	var a *attempt
	d.locked(func() { a = begin() })
	for {
		for a != nil {
			a = d.makeAttempt(a, false)
		}
		a = d.awaitNext()
		if a == nil {
			break
		}
	}
	returned = true
}

// makeAttempt makes an attempt, and returns the one that the goroutine must make next, or nil. ours says that the goroutine is one of ours.
func (d *driver) makeAttempt(a *attempt, ours bool) (next *attempt) {
	ended, err := d.tries.try(a)
	if !ended {
		return nil
	}
	return d.reportEnd(a, err, ours)
}

// reportEnd reports that an attempt has ended with err, and returns the one that the goroutine must make next, or nil. ours says that the
// goroutine is one of ours.
func (d *driver) reportEnd(a *attempt, err error, ours bool) (next *attempt) {
	if d.endsAtOnce(a, err) {
		a.endContext()
		return nil
	}
	r, now := d.tries.takeResult(a, err)
	d.locked(func() {
		defer d.changed.Broadcast()
		if d.of.engine.Over() { // a panic has ended the call meanwhile
			return
		}
		step := d.of.reportEnd(a, r, now)
		if d.of.retrier.observers.Load().attempts {
			d.notices = append(d.notices, notice{new(d.of.attemptEvent(a, r.Err)), tellAttempt})
		}
		next = d.act(&step, a, r.Err, now.At, ours)
	})
	return next
}

// endsAtOnce ends the call with the success of an attempt, if that needs no engine. Otherwise it joins the engine, which is to decide,
// and reports whether a panic has ended the call meanwhile.
func (d *driver) endsAtOnce(a *attempt, err error) (over bool) {
	d.locked(func() {
		if err == nil && d.tries.succeeded(a) {
			d.serve()
			over = true
			return
		}
		d.tries.join()
		over = d.of.engine.Over()
	})
	return over
}

// act carries out a step that the end of an attempt with err has brought, or another event, and returns the attempt that the goroutine
// must make, or nil. ours says that the goroutine is one of ours. The lock must be held.
func (d *driver) act(step *attempts.Step, ended *attempt, err error, at time.Duration, ours bool) (next *attempt) {
	for _, n := range step.Cancel {
		d.sent(n).endContext()
	}
	if step.Send > 0 {
		next = d.tries.prepare(step.Send, at, ours)
		d.attempts = append(d.attempts, next)
	}
	d.schedule(step, at)
	d.notices = append(d.notices, d.of.noticesOf(step, ended, err)...)
	return next
}

// sent returns attempt n, which was sent. The lock must be held.
func (d *driver) sent(n int) *attempt {
	return d.attempts[slices.IndexFunc(d.attempts, func(a *attempt) bool { return a.number == n })]
}

// awaitNext waits while goroutines of ours make attempts, and then until the next attempt is due. It returns that, or nil if there is none.
func (d *driver) awaitNext() (next *attempt) {
	for next == nil {
		due, watch, done := d.awaitOurs()
		if done {
			return nil
		}
		d.of.sleep(due, watch)
		d.locked(func() { next = d.wake(false) })
	}
	return next
}

// awaitOurs waits until no goroutine of ours makes attempts. It returns what the call waits for then.
func (d *driver) awaitOurs() (due time.Duration, watch, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.ours > 0 {
		d.changed.Wait()
	}
	return d.due, d.watch, d.served || d.of.endsStuck(attempts.Now{At: clock.Now()})
}

// wake wakes the engine, and returns the attempt that the goroutine must make now, or nil. ours says that the goroutine is one of ours.
// The lock must be held.
func (d *driver) wake(ours bool) *attempt {
	if d.of.engine.Over() { // a panic has ended the call meanwhile
		return nil
	}
	now := d.of.now()
	step := d.of.wake(now)
	return d.act(&step, nil, nil, now.At, ours)
}

// schedule sets the timer to the engine's next time, while attempts run and the application waits. The lock must be held.
func (d *driver) schedule(step *attempts.Step, at time.Duration) {
	d.due = step.Wake
	d.watch = step.Watch
	in := d.due - at
	switch {
	case d.served, d.due == attempts.Never, d.of.deciding() && d.of.engine.Running() == 0:
		d.stopTimer()
	case in <= 0: // a timer would be useless, and two at the same time crash the race detector in a synctest bubble
		d.stopTimer()
		go d.fire()
	case d.timer == nil:
		d.timer = time.AfterFunc(in, d.fire)
	default:
		d.timer.Reset(in)
	}
}

// stopTimer stops the timer, if there is one. The lock must be held.
func (d *driver) stopTimer() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// fire runs when the timer does, in a goroutine of ours. It makes the attempt that is due, and those that follow from its end. Events are
// delivered before the goroutine stops to count: run must not return while one is delivered.
func (d *driver) fire() {
	var a *attempt
	d.locked(func() {
		d.ours++
		a = d.fired()
	})
	for a != nil {
		a = d.makeAttempt(a, true)
	}
	d.locked(func() {
		d.ours--
		d.changed.Broadcast()
	})
}

// fired returns the attempt that is due, or nil. The lock must be held.
func (d *driver) fired() *attempt {
	d.tries.join()
	if d.served || d.of.engine.Running() == 0 { // else the application's goroutine wakes the engine
		return nil
	}
	return d.wake(true)
}

// unwind releases what the call holds while a panic in the application's goroutine goes up. It waits for goroutines of ours.
func (d *driver) unwind() {
	d.locked(func() {
		for _, a := range d.attempts {
			a.endContext()
		}
		d.stopTimer()
		d.tries.join()
		d.of.abortUnlessOver()
		for d.ours > 0 {
			d.changed.Wait()
		}
	})
}
