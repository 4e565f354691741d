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

// driver makes the attempts of a call in several goroutines: the application's, and ours, which the timer starts. The application's
// goroutine makes the first attempt, and each one that follows from the end of its own. A goroutine of ours makes the attempt that is due
// while others run, and those that follow from its end:
//
//	application   run ──► attempt 1 ──► its end ──► attempt 2 ──► … ──► waits for ours ─┬─► sleeps until one is due ──► attempt 3 ──► …
//	                       │                                                            └─► run returns
//	ours                   └─ it is slow ──► attempt 2 in parallel ──► its end ──► …
//
// So a call that is answered before its timer fires starts no goroutine.
//
//   - The engine decides, with the lock held. makeAttempt tells it of an end, and wake of the time.
//   - The driver has the timer. schedule sets it after each step of the engine. While no attempt runs, there is none: awaitNext sleeps.
//   - If a step sends an attempt, the goroutine that has told the engine makes it.
//   - run returns when the call is over or served, and no goroutine of ours makes an attempt. The attempts of a unary call have ended then.
//
// gRPC, inner interceptors, codecs, the classifier and observers run without the lock. Budget, breaker and the record of the method run
// with it. A panic of theirs is never recovered. In the application's goroutine, the call releases on the way up what it holds.
type driver struct {
	call   *call
	driven driven

	mu       lock       // guards the engine, and all below
	attempts []*attempt // in the order of sending
	ours     int        // how many goroutines of ours make attempts
	noneOurs sync.Cond  // broadcast when there are none any more
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

// driven is a call for the driver: a unary one, or a stream up to what the application waits for.
type driven interface {
	// newAttempt returns attempt n, which the engine sends; ours says that a goroutine of ours makes it. The lock is held.
	newAttempt(n int, at time.Duration, ours bool) *attempt
	// try makes an attempt, without the lock, and returns its result for the engine. If the attempt has what the application waits for, and
	// the engine need not hear of its end, try has called serve, and ended is false.
	try(a *attempt) (r attempts.Result, now attempts.Now, ended bool)
}

func (d *driver) init(c *call, of driven) {
	d.call = c
	d.driven = of
	d.due = attempts.Never
	d.noneOurs.L = &d.mu
}

// locked runs f with the lock, and then tells observers of the events that f has noted.
func (d *driver) locked(f func()) {
	var notices []notice
	func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		f()
		notices, d.notices = d.notices, nil
	}()
	for _, n := range notices {
		d.call.deliverNotice(n)
	}
}

// run makes attempts until one has what the application waits for, or the call is over. begin returns the first one to make, or nil if the
// call is over before. It runs with the lock.
func (d *driver) run(begin func() *attempt) {
	returned := false
	defer func() {
		if !returned {
			d.unwind()
		}
	}()
	var a *attempt
	d.locked(func() {
		a = begin()
		if a != nil {
			d.attempts = append(d.attempts, a)
		}
	})
	for done := false; !done; a, done = d.awaitNext() {
		for a != nil {
			a = d.makeAttempt(a, false)
		}
	}
	returned = true
}

// makeAttempt makes an attempt, reports its end, and returns the attempt that the goroutine must make next, or nil. ours says that the
// goroutine is one of ours.
func (d *driver) makeAttempt(a *attempt, ours bool) (next *attempt) {
	r, now, ended := d.driven.try(a)
	if !ended {
		return nil
	}
	d.locked(func() {
		d.join()
		step := d.call.reportEnd(a, r, now)
		next = d.act(&step, now.At, ours)
		if d.call.retrier.observers.Load().attempts {
			d.notices = append(d.notices, notice{new(d.call.attemptEvent(a, r.Err)), tellAttempt})
		}
		d.notices = append(d.notices, d.call.noticesOf(&step, a, r.Err)...)
	})
	return next
}

// serve ends the wait of the application, because an attempt has what it waits for. The lock must be held.
func (d *driver) serve() {
	d.served = true
	d.stopTimer()
}

// join starts the engine with the first attempt, if it has not started: most calls are answered before anything must be decided. The lock
// must be held.
func (d *driver) join() {
	if !d.call.deciding() {
		d.call.joinEngine(new(engineState))
	}
}

// act carries out a step of the engine, and returns the attempt that the goroutine must make, or nil. ours says that the goroutine is one
// of ours. The lock must be held.
func (d *driver) act(step *attempts.Step, at time.Duration, ours bool) (next *attempt) {
	for _, n := range step.Cancel {
		d.sent(n).endContext()
	}
	if step.Send > 0 {
		next = d.driven.newAttempt(step.Send, at, ours)
		d.attempts = append(d.attempts, next)
	}
	d.schedule(step, at)
	return next
}

// sent returns attempt n, which was sent. The lock must be held.
func (d *driver) sent(n int) *attempt {
	return d.attempts[slices.IndexFunc(d.attempts, func(a *attempt) bool { return a.number == n })]
}

// awaitNext waits until no goroutine of ours makes attempts, and then until the engine must be woken. It returns the attempt that the
// engine sends then, or nil. If run is to return, it returns done without a wait for the engine.
func (d *driver) awaitNext() (next *attempt, done bool) {
	due, watch, done := d.awaitOurs()
	if done {
		return nil, true
	}
	d.call.sleep(due, watch)
	d.locked(func() { next = d.wake(false) })
	return next, false
}

// awaitOurs waits until no goroutine of ours makes attempts. It returns when the engine must be woken, and whether run is to return.
func (d *driver) awaitOurs() (due time.Duration, watch, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.ours > 0 {
		d.noneOurs.Wait()
	}
	return d.due, d.watch, d.served || d.call.endsStuck(attempts.Now{At: clock.Now()})
}

// wake wakes the engine, and returns the attempt that the goroutine must make now, or nil. ours says that the goroutine is one of ours.
// The lock must be held.
func (d *driver) wake(ours bool) (next *attempt) {
	now := d.call.now()
	step := d.call.wake(now)
	next = d.act(&step, now.At, ours)
	d.notices = append(d.notices, d.call.noticesOf(&step, nil, nil)...)
	return next
}

// schedule sets the timer to the engine's next time, while attempts run. After a call is served, the engine has none. The lock must be held.
func (d *driver) schedule(step *attempts.Step, at time.Duration) {
	d.due = step.Wake
	d.watch = step.Watch
	in := d.due - at
	switch {
	case d.due == attempts.Never, d.call.deciding() && d.call.engine.Running() == 0:
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

// fire runs in a goroutine of ours when the timer fires. It makes the attempt that is due, and those that follow from its end. Events are
// delivered before the goroutine stops to count: run must not return while one is delivered.
func (d *driver) fire() {
	var a *attempt
	d.locked(func() {
		d.ours++
		d.join()
		if !d.served && d.call.engine.Running() > 0 { // else the application's goroutine wakes the engine
			a = d.wake(true)
		}
	})
	for a != nil {
		a = d.makeAttempt(a, true)
	}
	d.locked(func() {
		d.ours--
		if d.ours == 0 {
			d.noneOurs.Broadcast()
		}
	})
}

// unwind releases what the call holds after a panic in the application's goroutine. It waits for goroutines of ours.
func (d *driver) unwind() {
	d.locked(func() {
		for _, a := range d.attempts {
			a.endContext()
		}
		d.stopTimer()
		d.join()
		d.call.abortUnlessOver()
		for d.ours > 0 {
			d.noneOurs.Wait()
		}
	})
}
