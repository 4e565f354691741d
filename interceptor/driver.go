// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"runtime"
	"sync"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
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
// under it. All of them may panic or call Goexit, so the lock is always released by defer.
type driver struct {
	of    *call
	tries tries

	mu       lock       // guards the engine, and all below
	changed  sync.Cond  // broadcasts each change for which a goroutine may wait
	attempts []*attempt // by number
	ours     int        // how many goroutines of ours make attempts
	waiting  waiting    // the application
	timer    *time.Timer
	due      time.Duration // when to wake the engine
	watch    bool          // a change of the connection's state wakes it too
	panicked panicked      // in a goroutine of ours or of gRPC's
	events   eventQueue
}

// waiting is whether the application waits, and for what.
//
//	nobodyWaits ── a call of the application needs something of an attempt ──► callWaits ── an attempt has it ──► callServed
//	   │   ▲                                                                     ▲   │                                │
//	   │   ├── the call returns ─────────────────────────────────────────────────│───┴────────────────────────────────┘
//	   │   └── SendMsg returns ────────────────┐                                 │
//	   └── flow control blocks SendMsg ──► senderWaits ── such a call comes ─────┘
//
// A unary call waits from the beginning.
type waiting uint8

const (
	nobodyWaits waiting = iota
	senderWaits         // only the attempts' clock runs
	callWaits           // a call of the application makes attempts
	callServed          // the same call; it returns when our goroutines have ended
)

// timed reports whether the attempts' clock runs: they may be slow.
func (w waiting) timed() bool { return w == senderWaits || w == callWaits }

// drives reports whether a call of the application makes attempts.
func (w waiting) drives() bool { return w >= callWaits }

// serve ends the wait of a call of the application. The lock must be held.
func (d *driver) serve() {
	if d.waiting == callWaits {
		d.waiting = callServed
	}
}

// tries are what a driver makes: attempts of a unary call, or of a stream up to what the application waits for.
type tries interface {
	// prepare returns attempt n, which the engine sends; ours says that a goroutine of ours makes it. The lock is held.
	prepare(n int, at time.Duration, ours bool) *attempt
	// try makes an attempt, without the lock. It returns false if the attempt goes on: it has what the application waits for, or nobody
	// waits.
	try(a *attempt) (ended bool, err error)
	// takeResting returns an attempt that goes on and that no goroutine makes, for the application's goroutine to make, or nil. The lock is held.
	takeResting() *attempt
	// takeResult returns the result of an attempt that has ended with err, without the lock, and ends its context.
	takeResult(a *attempt, err error) (attempts.Result, attempts.Now)
	// succeeded ends the call after the success of an attempt, if it can without the engine. The lock is held.
	succeeded(a *attempt) bool
	// join starts the engine with the first attempt, if it has not started. The lock is held.
	join()
	// concluded is called when the call is over. The lock is held.
	concluded()
	// tell delivers the events of the call, without the lock.
	tell()
}

func (d *driver) init(of *call, t tries) {
	d.of = of
	d.tries = t
	d.due = attempts.Never
	d.changed.L = &d.mu
	d.events.mu = &d.mu
}

// locked runs f with the lock, and then delivers events without it.
func (d *driver) locked(f func()) {
	d.lockedOnly(f)
	d.tries.tell()
}

// lockedOnly runs f with the lock.
func (d *driver) lockedOnly(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// run makes attempts until one has what the application waits for, or the call is over. begin returns the first one to make, or nil if
// there is none now. It runs with the lock.
func (d *driver) run(begin func() *attempt) {
	var a *attempt
	returned := false
	defer func() {
		if !returned {
			d.unwind(a)
		}
	}()
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
	d.lockedOnly(func() { d.panicked.rethrow() }) // a goroutine of gRPC's may note one
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
	next = d.reportOnly(a, err, ours)
	d.tries.tell()
	return next
}

// reportOnly is reportEnd without the events.
func (d *driver) reportOnly(a *attempt, err error, ours bool) (next *attempt) {
	if d.endsAtOnce(a, err) {
		a.endContext()
		return nil
	}
	r, now := d.tries.takeResult(a, err)
	d.lockedOnly(func() {
		defer d.changed.Broadcast()
		if d.of.engine.Over() { // a panic has ended the call meanwhile
			return
		}
		step := d.of.reportEnd(a, r, now)
		if d.of.retrier.observers.Load().attempts {
			d.events.push(notice{new(d.of.attemptEvent(a, r.Err)), tellAttempt})
		}
		next = d.act(&step, a, r.Err, now.At, ours)
	})
	return next
}

// endsAtOnce ends the call with the success of an attempt, if that needs no engine. Otherwise it joins the engine, which is to decide,
// and reports whether a panic has ended the call meanwhile.
func (d *driver) endsAtOnce(a *attempt, err error) (over bool) {
	d.lockedOnly(func() {
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
		d.attempts[n-1].endContext()
	}
	if step.Send > 0 {
		next = d.tries.prepare(step.Send, at, ours)
		d.attempts = append(d.attempts, next)
	}
	d.schedule(step, at)
	d.events.push(d.of.noticesOf(step, ended, err)...)
	if d.of.engine.Over() {
		d.tries.concluded()
	}
	return next
}

// awaitNext waits while goroutines of ours make attempts, and then until the next attempt is due. It returns that, or nil if there is none.
func (d *driver) awaitNext() (next *attempt) {
	for next == nil {
		resting, due, watch, done := d.awaitOurs()
		if done || resting != nil {
			return resting
		}
		d.of.sleep(due, watch)
		d.locked(func() { next = d.wake(false) })
	}
	return next
}

// awaitOurs waits until no goroutine of ours makes attempts. It returns an attempt to go on with, or else what the call waits for.
func (d *driver) awaitOurs() (resting *attempt, due time.Duration, watch, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.ours > 0 {
		d.changed.Wait()
	}
	if !d.waiting.timed() || d.of.engine.Over() {
		return nil, 0, false, true
	}
	return d.tries.takeResting(), d.due, d.watch, false
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
	case !d.waiting.timed(), d.due == attempts.Never, d.of.deciding() && d.of.engine.Running() == 0:
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

// fire runs when the timer does, in a goroutine of ours. It makes the attempt that is due, and those that follow from its end.
func (d *driver) fire() {
	d.lockedOnly(func() { d.ours++ })
	d.makeBeside(d.fired)
}

// startGoroutine starts a goroutine of ours, which makes the attempt that begin returns with the lock, as fire does. The lock must be held.
func (d *driver) startGoroutine(begin func() *attempt) {
	d.ours++
	go d.makeBeside(begin)
}

// makeBeside makes the attempt that begin returns with the lock, if there is one, and those that follow, in a goroutine of ours.
func (d *driver) makeBeside(begin func() *attempt) {
	var a *attempt
	returned := false
	defer func() { d.leave(a, returned, recover()) }()
	d.locked(func() { a = begin() })
	for {
		for a != nil {
			a = d.makeAttempt(a, true)
		}
		a = d.awaitUnwatched()
		if a == nil {
			break
		}
	}
	returned = true
}

// awaitUnwatched waits until the next attempt is due, and returns it. It returns nil if there is none, or if the application waits for it.
// While the goroutine sleeps, nobody waits for it: an application that comes meanwhile waits for the next attempt, too, and the first that
// wakes makes it.
func (d *driver) awaitUnwatched() (next *attempt) {
	for next == nil {
		unwatched, due, watch := false, time.Duration(0), false
		d.lockedOnly(func() {
			unwatched = !d.waiting.timed() && d.of.deciding() && !d.of.engine.Over() && d.of.engine.Running() == 0
			if unwatched {
				due, watch = d.due, d.watch
				d.ours--
				d.changed.Broadcast()
			}
		})
		if !unwatched {
			return nil
		}
		d.of.sleep(due, watch)
		d.locked(func() {
			d.ours++
			if d.of.engine.Running() == 0 {
				next = d.wake(true)
			}
		})
	}
	return next
}

// fired returns the attempt that is due, or nil. The lock must be held.
func (d *driver) fired() *attempt {
	d.tries.join()
	if !d.waiting.timed() || d.of.engine.Running() == 0 { // else the application's goroutine wakes the engine
		return nil
	}
	return d.wake(true)
}

// leave ends a goroutine of ours. If it has panicked, the application's goroutine panics too, when all attempts have ended: as it
// would have without the timer. Events are delivered before the goroutine stops to count: run must not return while one is delivered.
func (d *driver) leave(a *attempt, returned bool, with any) {
	defer d.lockedOnly(func() {
		d.ours--
		d.changed.Broadcast()
	})
	if returned {
		return
	}
	defer func() { _ = recover() }() // of an observer: the first panic is the one that comes up
	d.locked(func() {
		d.panicked.note(with)
		d.abort(a)
	})
}

// unwind ends a call in which the application's goroutine has panicked: in attempt a, or in a callback. It waits for ours.
func (d *driver) unwind(a *attempt) {
	d.locked(func() {
		d.abort(a)
		for d.ours > 0 {
			d.changed.Wait()
		}
	})
}

// abort ends the call after a panic, and cancels its attempts. The lock must be held.
func (d *driver) abort(a *attempt) {
	if a != nil {
		a.endContext()
	}
	d.stopTimer()
	d.tries.join()
	if !d.of.engine.Over() {
		step := d.of.engine.Abort(d.of.now())
		for _, n := range step.Cancel {
			if n <= len(d.attempts) { // else an option of it has panicked before it was sent
				d.attempts[n-1].endContext()
			}
		}
	}
	d.tries.concluded()
}

// panicked is a panic or Goexit of foreign code in a goroutine of ours or of gRPC's. It is repeated in the application's goroutine,
// where it would have happened without us.
type panicked struct {
	value any // of the first one; goexit{} for Goexit; nil: there was none
}

// goexit stands for a call of [runtime.Goexit].
type goexit struct{}

// note keeps what recover has returned after a panic, or nil after Goexit.
func (p *panicked) note(recovered any) {
	switch {
	case p.value != nil:
	case recovered == nil:
		p.value = goexit{}
	default:
		p.value = recovered
	}
}

// rethrow repeats the panic or Goexit, if there was one.
func (p *panicked) rethrow() {
	switch p.value {
	case nil:
	case goexit{}:
		runtime.Goexit()
	default:
		panic(p.value)
	}
}
