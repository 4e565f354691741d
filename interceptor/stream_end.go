// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// streamOutcome is how a stream has ended. The driver's lock guards it.
type streamOutcome struct {
	phases  atomic.Uint32  // endPhase; also read without the lock
	final   error          // nil: success
	shown   *streamAttempt // whose response it is; nil: none
	instead *streamAttempt // shown in place of an attempt to which a message could not be sent; nil: none
	replied bool           // the application has received the one reply
	later   error          // RecvMsg has returned it after the end; nil: nothing
}

// endPhase is how far the end of a stream has come. OnFinish may call the stream: such calls return the end without waiting.
//
//	notOver ────────── the engine says Over ──────────┬──► endKnown ── the caller's OnFinish ──► endTelling ──► endTold
//	   └── its context has ended ──► contextGone ─────┘                                                            ▲
//	                                                  └── the caller has no targets and no OnFinish ───────────────┘
type endPhase uint32

const (
	notOver     endPhase = iota
	contextGone          // so long ago that no OnFinish of gRPC's will come: whoever finds an attempt reports its end
	endKnown             // the response is known
	endTelling
	endTold
)

func (o *streamOutcome) phase() endPhase     { return endPhase(o.phases.Load()) }
func (o *streamOutcome) setPhase(p endPhase) { o.phases.Store(uint32(p)) }

// beginTelling returns true once, for the goroutine that runs the caller's OnFinish.
func (o *streamOutcome) beginTelling() bool {
	return o.phases.CompareAndSwap(uint32(endKnown), uint32(endTelling))
}

// isOver reports whether the call is over. The lock must be held.
func (s *stream) isOver() bool { return s.outcome.phase() >= endKnown }

// hasEnded reports whether the call is over.
func (s *stream) hasEnded() bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return s.isOver()
}

// endsWith reports whether the call is over with attempt t, whose end is reported, or is being reported. If the call is committed to t, it
// waits until that is known: a resumed stream goes on.
func (s *stream) endsWith(t *streamAttempt) bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	for s.committed() == t && !s.isOver() {
		s.driver.changed.Wait()
	}
	return s.isOver()
}

// concluded implements tries. That the call is over, and its response, are set in one place.
func (s *stream) concluded() {
	o := &s.outcome
	if s.isOver() {
		return
	}
	o.shown = o.instead
	if n := s.call.end().Answer; o.shown == nil && n > 0 {
		o.shown = s.driver.attempts[n-1].ofStream
	}
	if o.shown == nil {
		o.shown = s.committed()
	}
	reported := &unreported
	if o.shown != nil {
		reported = o.shown.reported()
	}
	o.final = s.answer(reported)
	if s.options.targets == noTargets {
		o.setPhase(endTold)
	} else {
		o.setPhase(endKnown)
	}
	s.receives.Store(nil) // who comes from now on must look at the end
	s.sends.Store(nil)
	s.request.buffer.close()
	s.driver.stopTimer()
	if s.unwatch != nil {
		s.unwatch()
	}
	if s.deciding() || s.cancel != nil || s.retrier.observers.Load().calls {
		s.driver.events.push(notice{}) // the end, of which somebody hears, or which ends the policy's timeout
	}
	s.driver.changed.Broadcast()
}

// tell implements tries. It runs the caller's OnFinish, for which the application's call waits, and delivers events to observers, for
// which nothing waits.
func (s *stream) tell() {
	defer s.driver.events.tell(s.tellObservers) // also if OnFinish panics
	if s.outcome.beginTelling() {
		s.tellCaller()
	}
}

// tellObservers delivers one event.
func (s *stream) tellObservers(n notice) {
	if n.told != nil {
		s.deliverNotice(n)
		return
	}
	defer s.cancelTimeout() // after the observers, who may make calls
	s.notifyEnd(s.outcome.final)
}

// tellCaller runs the caller's OnFinish.
func (s *stream) tellCaller() {
	defer s.lockedOnly(func() {
		s.outcome.setPhase(endTold)
		s.driver.changed.Broadcast()
	})
	s.options.tellFinished(s.outcome.final)
}

// ended returns whether the call is over, for a call of the application that begins; inside is as in [stream.result]. The lock must be
// held.
func (s *stream) ended() (over, inside bool) {
	return s.isOver(), s.outcome.phase() == endTelling
}

func (s *stream) isCommitted(t *streamAttempt) bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return s.committed() == t
}

// result waits until the call is over and its caller has been told, and returns its error. inside says that the caller's OnFinish ran
// already when the application's call began: that call may be OnFinish's own.
func (s *stream) result(inside bool) error {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	for !s.isOver() || s.outcome.phase() != endTold && !inside {
		s.driver.changed.Wait()
	}
	s.driver.panicked.rethrow()
	return s.outcome.final
}

// passedEnd is RecvMsg on a committed attempt that has returned err, an error or io.EOF. If a message could not be sent to the attempt,
// that has ended it.
func (s *stream) passedEnd(t *streamAttempt, err error) error {
	if s.claim(t, true) {
		s.settle(t, s.causeOf(t, endOf(err)))
	}
	final := s.result(false)
	switch {
	case s.causeOf(t, err) == io.EOF:
		return io.EOF // also after a deadline: gRPC had received the server's end
	case s.endsItself():
		return endOrEOF(final)
	default:
		return s.amend(err)
	}
}

// endOf returns the end of an attempt whose RecvMsg has returned err: nil is success.
func endOf(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// endOrEOF returns what RecvMsg returns of an attempt that has ended with err: io.EOF is success.
func endOrEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// endsItself reports whether the end of the call has ended its attempt, whose own error then says less.
func (s *stream) endsItself() bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return s.stopped() || s.outcome.shown.failure != nil
}

// stopped reports whether a call that is over has ended with its context or connection. The lock must be held.
func (s *stream) stopped() bool {
	switch s.call.end().Reason {
	case policy.ReasonDeadlineExceeded, policy.ReasonCancelled, policy.ReasonClosed:
		return true
	default:
		return false
	}
}

// amend returns the result of RecvMsg that has returned err after the call's end: gRPC's error may say more than that, and so may an
// inner interceptor's.
func (s *stream) amend(err error) error {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	o := &s.outcome
	if o.later == nil {
		o.later = o.final
	}
	o.later = amended(o.later, err)
	return o.later
}

// receiveAfterEnd is RecvMsg when the call is over with final, nil after success. The attempt that the call shows may still have
// messages, if it has ended with its context or connection, or if no call of the application has found its end.
func (s *stream) receiveAfterEnd(m any, final error) error {
	var t *streamAttempt
	replies, drains := false, false
	s.lockedOnly(func() {
		o := &s.outcome
		t = o.shown
		replies = final == nil && !s.desc.ServerStreams && !o.replied && t.maker != makerUnfound
		o.replied = true
		readable := t != nil && t.stream != nil && o.instead == nil
		drains = readable && (t.maker == makerUnfound || s.stopped() && !isResponse(final) || t.failure != nil)
	})
	switch {
	case replies && t.ownReply:
		copyReply(m, t.reply)
		return nil
	case replies:
		return nil // it was received into m
	case !drains && final == nil:
		return io.EOF
	case !drains:
		return final
	}
	err := t.stream.RecvMsg(m)
	switch {
	case err == nil, err == io.EOF:
		return err
	case s.endsItself():
		return endOrEOF(final)
	default:
		return s.amend(err)
	}
}

// onFinish runs when gRPC has ended an attempt, in any goroutine. It reports the end of its context or the connection if no call of the
// application is inside. A server's response is found by the application's next call, since messages may be left for it.
func (t *streamAttempt) onFinish(err error) {
	s := t.of
	reports := false
	s.lockedOnly(func() {
		if t.finished != nil {
			return
		}
		t.finished = endOrEOF(err)
		switch {
		case t.maker != makerNone || t.stream == nil || s.isOver():
		case s.isCutOff(t):
			reports = true
		default:
			s.giveTimeToFind(t)
		}
	})
	if reports {
		s.reportUnfound(t)
	}
}

// isCutOff reports whether an attempt has ended with its context or connection: its end is reported at once, and nobody waits for a call
// of the application that finds it. The lock must be held.
func (s *stream) isCutOff(t *streamAttempt) bool {
	return s.outcome.phase() == contextGone || t.cutOff()
}

// cutOff reports whether gRPC has ended the attempt because its context is over or the connection is closed. The lock must be held.
func (t *streamAttempt) cutOff() bool {
	return t.finished != nil && t.finished != io.EOF && !isResponse(t.finished) && (t.ctx.Err() != nil || closed(t.of.cc))
}

// giveTimeToFind gives the application a second to find the end of an attempt that gRPC has ended, and that nobody makes: an inner
// interceptor receives ahead, or the application does something else. Then the end is reported. Of an attempt that the call is not
// committed to, only RecvMsg finds the success. The lock must be held.
func (s *stream) giveTimeToFind(t *streamAttempt) {
	if t.finished == nil {
		return
	}
	committed := s.committed()
	withoutMessage := committed == t && s.receives.Load() == nil // else the application receives from gRPC, and finds the end there
	if (withoutMessage || committed == nil && t.finished != io.EOF) && s.resume.next == nil {
		time.AfterFunc(timeToFind, func() { s.reportUnfound(t) })
	}
}

// reportUnfound reports the end of an attempt that no call of the application has found, and opens the next attempt, if one follows.
func (s *stream) reportUnfound(t *streamAttempt) {
	if s.reportFinished(t) && !s.hasEnded() {
		s.follow()
	}
}

// contextOver runs when the call's context is over. OnFinish reports that for each attempt, unless an inner interceptor doesn't pass on
// its options.
func (s *stream) contextOver() {
	if s.wakeIdle() {
		time.AfterFunc(longestEnd, s.contextLongOver)
	}
}

// contextLongOver runs some time after the call's context is over.
func (s *stream) contextLongOver() {
	var unmade []*streamAttempt
	s.lockedOnly(func() {
		if s.isOver() {
			return
		}
		s.outcome.setPhase(contextGone)
		for _, a := range s.driver.attempts {
			if t := a.ofStream; t.maker == makerNone {
				unmade = append(unmade, t)
			}
		}
	})
	for _, t := range unmade {
		s.reportFinished(t)
	}
	s.wakeIdle()
}

// wakeIdle makes the engine notice the end of the context if nothing else will: no attempt runs, and no call of the application waits
// for the next one. It returns false if the call is over.
func (s *stream) wakeIdle() (runs bool) {
	returned := false
	defer func() {
		if !returned {
			s.goroutinePanicked(nil, recover())
		}
	}()
	s.locked(func() {
		idle := !s.driver.waiting.drives() && s.reporting == 0 && s.driver.ours == 0 && s.running() == nil
		if idle && !s.isOver() {
			s.join()
			s.driver.wake(false) // it sends nothing: the context is over
		}
		runs = !s.isOver()
	})
	returned = true
	return runs
}

// claim makes a goroutine that doesn't make attempt t report its end, with settle. It returns true once, and only if nobody makes the
// attempt. found says that a call of the application has found the end. While another call drives, that may be about to go on with t: a
// call that has found the end waits for it, and any other end is left to it.
func (s *stream) claim(t *streamAttempt, found bool) bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	for found && s.driver.waiting.drives() && !s.isOver() {
		s.driver.changed.Wait()
	}
	if t.maker != makerNone || s.driver.waiting.drives() || s.isOver() {
		return false
	}
	t.maker = makerUnfound
	if found {
		t.maker = makerOver
	}
	s.reporting++
	return true
}

// settle reports the end of an attempt that was claimed. If another one follows at once, the application's next call makes it. No call of
// the application waits for the observers that are told of the end.
func (s *stream) settle(t *streamAttempt, err error) {
	settled, returned := false, false
	defer func() {
		if !returned {
			s.driver.unwind(&t.attempt)
		}
		if !settled {
			s.settled(nil)
		}
	}()
	s.settled(s.driver.reportOnly(&t.attempt, err, false))
	settled = true
	s.tell()
	returned = true
}

// settled ends the report of a claimed end. next is the attempt that follows at once, or nil.
func (s *stream) settled(next *attempt) {
	s.lockedOnly(func() {
		if next != nil {
			next.ofStream.maker = makerNone
		}
		s.reporting--
		s.driver.changed.Broadcast()
	})
}

// reportFound reports the end of an attempt that a call of the application has found, unless it is reported.
func (s *stream) reportFound(t *streamAttempt, err error) {
	if s.claim(t, true) {
		s.settle(t, err)
	}
}

// reportFinished reports the end of an attempt that gRPC has ended, or that of its context, if nobody makes the attempt. Nothing can
// recover a panic in gRPC's goroutines: the application's next call repeats it. It returns false if somebody else reports the end.
func (s *stream) reportFinished(t *streamAttempt) (claimed bool) {
	if !s.claim(t, false) {
		return false
	}
	err := s.endWithoutCall(t)
	returned := false
	defer func() {
		if !returned {
			with := recover()
			s.lockedOnly(func() { s.driver.panicked.note(with) })
		}
	}()
	s.settle(t, err)
	returned = true
	return true
}

// endWithoutCall returns the end of an attempt that no call of gRPC's has returned.
func (s *stream) endWithoutCall(t *streamAttempt) error {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	switch {
	case t.failure != nil:
		return t.failure
	case t.finished != nil:
		return endOf(t.finished)
	default:
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// goroutinePanicked ends a call in which a goroutine of ours has panicked: the application's next call repeats it.
func (s *stream) goroutinePanicked(a *attempt, with any) {
	defer func() { _ = recover() }() // of an observer: the first panic is the one that comes up
	s.locked(func() {
		s.driver.panicked.note(with)
		s.driver.abort(a)
	})
}
