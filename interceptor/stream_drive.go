// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

var _ tries = (*stream)(nil)

// errFollowed says that the attempt that ran has ended, and another one follows later, or that another call finds out.
var errFollowed = errors.New("another attempt follows")

// await makes attempts until one has what the application wants, and returns it, or nil when the call is over, with its error. RecvMsg
// receives into m. With wantEnd, the error may be errFollowed.
func (s *stream) await(w want, m any) (*streamAttempt, error) {
	t, is, inside := s.awaitTurn(w, m)
	inside = inside || w == wantEnd // SendMsg doesn't tell the end: it waits for no OnFinish of another call, which may wait for the sender
	over := false
	switch is {
	case turnOver:
		return nil, s.result(inside)
	case turnDrives:
		t, over = s.driveOn()
	case turnLeft: // t is what it wants, if it wants an attempt
	}
	switch {
	case t != nil:
		return t, nil // also if the call's context ended just after that
	case over:
		return nil, s.result(inside)
	default:
		return nil, errFollowed
	}
}

// turn is how the wait of a call of the application for its drive ends.
type turn uint8

const (
	turnDrives turn = iota // it drives
	turnLeft               // it need not: it has what it wants, or the call that drives finds that out
	turnOver               // the call is over
)

// awaitTurn waits until no other call drives, if it has to. inside is as in [stream.result].
func (s *stream) awaitTurn(w want, m any) (t *streamAttempt, is turn, inside bool) {
	next := drive{want: w, message: m}
	if w == wantMessage { // without the lock: it runs the function of WithNewReply
		next.before.keep(m, s.usesGRPCsCodec())
		if s.races {
			next.replies = s.retrier.replyType(s.method, m)
		}
	}
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	if over, inside := s.ended(); over {
		return nil, turnOver, inside
	}
	for {
		if s.isOver() {
			return nil, turnOver, false
		}
		if t, left := s.leftToOthers(w); left {
			return t, turnLeft, false
		}
		if !s.driver.waiting.drives() && s.reporting == 0 {
			break
		}
		s.driver.changed.Wait()
	}
	s.reportPause(attempts.Now{At: clock.Now()}) // before a goroutine of ours can receive
	s.driver.waiting = callWaits
	s.drive = next
	return nil, turnDrives, false
}

// leftToOthers reports whether a call that wants w need not drive, and returns the attempt that has what it wants, if there is one.
// Otherwise it would wait for a RecvMsg that drives, and whose message the server may send only after this call. The lock must be held.
func (s *stream) leftToOthers(w want) (t *streamAttempt, left bool) {
	driven := s.driver.waiting.drives()
	switch w {
	case wantOpened:
		t = s.opened()
		return t, t != nil // a goroutine of ours may be inside of it for long
	case wantHeaders:
		t = s.committed()
		return t, driven && t != nil && !t.over() && t.stream != nil // gRPC allows Header next to RecvMsg
	case wantEnd:
		return nil, driven && s.committed() == nil // the call that drives finds it
	default:
		return nil, false
	}
}

// driveOn drives. It returns the attempt that has what the application wants, and whether the call is over.
func (s *stream) driveOn() (won *streamAttempt, over bool) {
	returned := false
	defer func() {
		if !returned {
			s.endDrive()
		}
	}()
	s.driver.run(s.continueDrive)
	returned = true
	return s.endDrive()
}

// continueDrive returns the attempt that the application's goroutine goes on with, or nil. The lock must be held.
func (s *stream) continueDrive() *attempt {
	if !s.driver.waiting.timed() { // a goroutine of ours has received the message since the drive began
		return nil
	}
	if !s.deciding() {
		return s.takeResting()
	}
	if s.running() == nil {
		return s.driver.wake(false)
	}
	now := s.engineNow()
	step := s.engine.Paused(0, now) // only for when to wake it
	next := s.takeResting()
	for _, a := range s.driver.attempts {
		if t := a.ofStream; t.maker == makerNone {
			s.giveToGoroutine(t)
		}
	}
	s.driver.schedule(&step, now.At)
	return next
}

// takeResting implements tries.
func (s *stream) takeResting() *attempt {
	for _, a := range s.driver.attempts {
		if t := a.ofStream; t.maker == makerNone {
			t.maker = makerCall
			return a
		}
	}
	return nil
}

// try implements tries: it goes on with an attempt from where that is, until the application has what it wants.
func (s *stream) try(a *attempt) (ended bool, err error) {
	t := a.ofStream
	for {
		switch s.nextStep(t) {
		case stepRest:
			return false, nil
		case stepGiveUp:
			return true, errGivenUp
		case stepFail:
			return true, s.causeOf(t, nil)
		case stepEnded:
			return true, s.endWithoutCall(t)
		case stepOpen:
			err = s.openAttempt(t)
		case stepReplay:
			s.replayTo(t)
		case stepReplayBeside:
			go s.replayBeside(t)
		case stepHeaders:
			ended, err = s.askHeaders(t)
		case stepReceive:
			ended, err = s.receive(t)
		}
		if ended || err != nil {
			return true, err
		}
	}
}

// attemptStep is what the goroutine that makes an attempt does next.
type attemptStep uint8

const (
	stepRest         attemptStep = iota // nothing: the application has what it wants, or nobody waits
	stepGiveUp                          // report that another attempt has won, or replaces it
	stepFail                            // report that a message could not be sent to it
	stepEnded                           // report that gRPC or the context has ended it
	stepOpen                            // open it
	stepReplay                          // send it what was kept
	stepReplayBeside                    // the same, in a goroutine: a server may read on only after the application has received from it
	stepHeaders                         // ask for its headers, or find out how it has ended
	stepReceive                         // receive a message
)

// nextStep returns what the goroutine that makes t does next.
func (s *stream) nextStep(t *streamAttempt) (do attemptStep) {
	s.locked(func() {
		do = s.stepOf(t)
		switch {
		case do != stepRest:
		case !s.driver.waiting.drives() && s.isCutOff(t): // else endDrive looks
			do = stepEnded
			t.maker = makerUnfound // messages may be left in it
		default:
			t.maker = makerNone
			s.driver.changed.Broadcast()
			if !s.driver.waiting.drives() {
				s.giveTimeToFind(t)
			}
		}
	})
	return do
}

// stepOf returns what the goroutine that makes t does next. If t has what the application wants, stepOf ends the drive, and commits the
// call to t if the application then sees a part of it. The lock must be held.
func (s *stream) stepOf(t *streamAttempt) attemptStep {
	switch {
	case s.cancelled(t), s.isOver():
		return stepGiveUp
	case t.received == receivedMessage:
		return s.takeMessage(t)
	case t.stream == nil:
		return stepOpen
	case t.failure != nil:
		return stepFail
	case t.sending == sendsFreely && s.lacks(t):
		t.sending = sendsKept
		if s.desc.ClientStreams {
			return stepReplayBeside
		}
		return stepReplay
	case !s.driver.waiting.drives() && s.races && t.maker == makerGoroutine && t.headers == nil:
		return stepHeaders // so that a failure is found while nobody waits
	case !s.driver.waiting.drives():
		return stepRest
	}
	switch s.drive.want {
	case wantOpened:
		return s.reach(t)
	case wantEnd:
		if t.sending != sendsNoMore {
			return s.reach(t)
		}
		return s.headersStep(t)
	case wantHeaders:
		return s.headersStep(t)
	default:
		return s.messageStep(t)
	}
}

// headersStep returns the next step of an attempt whose headers commit the call. The lock must be held.
func (s *stream) headersStep(t *streamAttempt) attemptStep {
	switch {
	case t.headers == nil:
		return stepHeaders
	case s.commit(t, decision.CommitHeaders):
		return s.reach(t)
	default:
		return stepGiveUp
	}
}

// messageStep returns the next step of an attempt whose message commits the call. The lock must be held.
func (s *stream) messageStep(t *streamAttempt) attemptStep {
	makes := s.drive.replies.makes()
	switch {
	case t.maker == makerGoroutine && !makes:
		return stepRest // the application's goroutine takes it over
	case s.races && !makes && !s.commit(t, decision.CommitMessage):
		return stepGiveUp // no other attempt can receive a message
	default:
		return stepReceive
	}
}

// takeMessage commits the call to an attempt that has brought a message, and returns its next step. The lock must be held.
func (s *stream) takeMessage(t *streamAttempt) attemptStep {
	t.received = receivedNothing
	if !s.commit(t, decision.CommitMessage) {
		return stepGiveUp
	}
	s.hear(t)
	return s.reach(t)
}

// reach ends the drive: t has what the application wants. The lock must be held.
func (s *stream) reach(t *streamAttempt) attemptStep {
	if s.drive.won == nil {
		s.drive.won = t
	}
	s.driver.serve()
	return stepRest
}

// commit makes t the only attempt. It returns false if another one has won, or t has ended. The lock must be held.
func (s *stream) commit(t *streamAttempt, why decision.Commit) bool {
	if committed := s.committed(); committed != nil || s.isOver() {
		return committed == t
	}
	if t.over() || s.cancelled(t) {
		return false
	}
	if why == decision.CommitMessage && !s.deciding() {
		s.beginning.commit = why
	} else {
		s.join()
		now := s.engineNow()
		step, ok := s.engine.Commit(t.number, why, now)
		s.driver.act(&step, nil, nil, now.At, false) // it sends nothing: a call that is committed has its attempt
		if !ok {
			return false
		}
	}
	s.driver.changed.Broadcast()
	s.passThrough()
	for _, a := range s.driver.attempts {
		if other := a.ofStream; other != t && other.maker == makerNone {
			s.giveToGoroutine(other) // it is cancelled, and somebody has to report it
		}
	}
	return true
}

// commitment returns the attempt that the call is committed to, and why; nil: none. The lock must be held.
func (s *stream) commitment() (*streamAttempt, decision.Commit) {
	n, why := 1, s.beginning.commit
	if s.deciding() {
		n, why = s.engine.Committed()
	}
	if why == decision.CommitNone {
		return nil, why
	}
	return s.driver.attempts[n-1].ofStream, why
}

// committed returns the attempt that the call is committed to, or nil. The lock must be held.
func (s *stream) committed() *streamAttempt {
	t, _ := s.commitment()
	return t
}

// cancelled reports whether the engine has cancelled an attempt that goes on: another one has won, or replaces it. The lock must be held.
func (s *stream) cancelled(t *streamAttempt) bool {
	return s.deciding() && s.engine.Cancelled(t.number)
}

// hear records the response of an attempt: its first message, or a success without any. The lock must be held.
func (s *stream) hear(t *streamAttempt) {
	if !t.heard {
		t.heard = true
		at := clock.Now()
		if s.deciding() {
			s.engine.Heard(t.number, attempts.Now{At: at})
		} else if took, measures := s.beginning.timing.Hear(at); measures && s.entry.responses != nil {
			s.recordResponse(at, took)
		}
	}
	s.passThrough()
}

// passThrough lets the application use the committed attempt directly, in each direction in which nothing is left to do. A stream that may
// be resumed never passes through. The lock must be held.
func (s *stream) passThrough() {
	t := s.committed()
	if t == nil || t.over() || s.isOver() {
		return
	}
	hasAll := t.sending == sendsFreely && t.stream != nil && !s.lacks(t)
	if hasAll || t.sending == sendsNoMore {
		s.request.buffer.release()
	}
	if s.resume.next != nil {
		return
	}
	if hasAll {
		s.sends.Store(t)
	}
	if t.heard && s.desc.ServerStreams {
		s.receives.Store(t)
	}
}

// takeResult implements tries. It waits for gRPC's own end of the attempt, which may still write trailer and peer.
func (s *stream) takeResult(a *attempt, err error) (attempts.Result, attempts.Now) {
	t := a.ofStream
	cancelled, committed := false, false
	s.lockedOnly(func() {
		t.setOver()
		cancelled = s.cancelled(t)
		committed = s.committed() == t
		if s.drive.want == wantEnd {
			s.driver.serve()
		}
		s.driver.changed.Broadcast()
	})
	now := s.now()
	code := status.Code(err)
	switch {
	case closed(s.cc) && strings.HasSuffix(messageOf(err), connClosing):
		err = errConnClosing // Header wraps it
	case cancelled && code == codes.Canceled:
		err = errGivenUp
	case code == codes.Canceled && s.reasonGone(now) == policy.ReasonDeadlineExceeded: // a context of an inner interceptor may have ended before it
		err = status.FromContextError(context.DeadlineExceeded).Err()
	}
	local, over := s.local(a, err, now), a.ctx.Err() != nil
	a.noteReport()
	a.cancel()
	if t.stream != nil && (over || err != nil && !isResponse(err)) {
		a.awaitEnd()
	}
	r := s.resultOf(a, nil, err, local, now)
	if t.received == receivedPart {
		s.endSpoiled(&r)
	}
	if r.Err != nil && !r.Local {
		s.noteFailure(t, &r, committed)
	}
	return r, now
}

// noteFailure records the error of a server. A stream that was cut after a message may be resumed: the request for the rest replaces
// what is kept before the engine decides. If that can't be kept, the result is final, since nothing is left to replay.
func (s *stream) noteFailure(t *streamAttempt, r *attempts.Result, committed bool) {
	var request encoded
	resumes := committed && t.stream != nil && s.ctx.Err() == nil && s.rest(&request)
	s.lockedOnly(func() {
		t.serverError = r.Err
		s.lastFailed = t
		if !resumes {
			return
		}
		r.Resumes = s.request.replace(&request)
		if !r.Resumes {
			r.Final = true
			return
		}
		r.Progress, s.resume.progress = s.resume.progress, false
	})
}

// succeeded implements tries.
func (s *stream) succeeded(a *attempt) bool {
	if s.isOver() || s.deciding() || s.retrier.observers.Load().attempts || a.ctx.Err() != nil {
		return false
	}
	t := a.ofStream
	t.setOver()
	if s.options.targets != noTargets {
		t.noteReport()
	}
	if !s.foreign(a) {
		s.hear(t)
		s.entry.budget.Observe(clock.Time(s.start), budget.EventCallSucceeded)
	}
	s.concluded()
	return true
}

// endDrive lets other calls drive. If an attempt has ended meanwhile, and the application's call has not noticed, nobody else would.
func (s *stream) endDrive() (won *streamAttempt, over bool) {
	var ended []*streamAttempt
	s.lockedOnly(func() {
		won = s.drive.won
		s.driver.waiting = nobodyWaits
		s.driver.stopTimer()
		s.drive = drive{}
		s.idleSince = clock.Now()
		s.driver.changed.Broadcast()
		for _, a := range s.driver.attempts {
			t := a.ofStream
			switch {
			case t.maker != makerNone:
			case s.isCutOff(t):
				ended = append(ended, t)
			default:
				s.giveTimeToFind(t)
			}
		}
	})
	for _, t := range ended {
		s.reportFinished(t)
	}
	return won, s.hasEnded()
}

// follow opens the next attempt in a goroutine of ours when its backoff is over, for an application that only sends, or does something else.
func (s *stream) follow() {
	s.lockedOnly(func() {
		s.driver.startGoroutine(func() *attempt {
			t := s.running()
			if t == nil || t.stream != nil || t.maker != makerNone {
				return nil // it is not due yet, or another goroutine makes it
			}
			t.maker = makerGoroutine
			return &t.attempt
		})
	})
}

// giveToGoroutine has a goroutine of ours make an attempt that no other goroutine makes. The lock must be held.
func (s *stream) giveToGoroutine(t *streamAttempt) {
	t.maker = makerGoroutine
	s.driver.startGoroutine(func() *attempt { return &t.attempt })
}

// prepare implements tries.
func (s *stream) prepare(n int, at time.Duration, ours bool) *attempt {
	t := s.newStreamAttempt(*s.laterAttempt(n, at))
	t.maker = makerCall
	if ours {
		t.maker = makerGoroutine
	}
	return &t.attempt
}

// join implements tries.
func (s *stream) join() {
	if s.deciding() {
		return
	}
	s.prepareEngine(true)
	s.engine.Join(&s.set, s.beginning.timing)
	if s.beginning.commit != decision.CommitNone {
		s.engine.Commit(1, s.beginning.commit, attempts.Now{At: clock.Now()})
	}
}

// engineNow returns the time and the state of the connection, for the engine. The lock must be held.
func (s *stream) engineNow() attempts.Now {
	now := s.now()
	if !s.isOver() { // else observers may be told of its mode
		s.stayOff(&now)
	}
	return now
}

// reportPause tells the engine for how long no call of the application has waited, before one begins to wait, or while none does. The lock
// must be held.
func (s *stream) reportPause(now attempts.Now) attempts.Step {
	d := time.Duration(0)
	if s.driver.waiting == nobodyWaits {
		d = max(now.At-s.idleSince, 0)
		s.idleSince = now.At
	}
	if s.deciding() {
		return s.engine.Paused(d, now)
	}
	s.beginning.timing.Pause(d)
	return attempts.Step{Wake: attempts.Never}
}

// requested records that an attempt has the whole request. The lock must be held.
func (s *stream) requested(t *streamAttempt) {
	now := attempts.Now{At: clock.Now()}
	s.reportPause(now)
	if s.deciding() {
		s.engine.Requested(t.number, now)
	} else {
		s.beginning.timing.Request(now.At)
	}
}

// running returns the attempt that the call is committed to, or the oldest one that runs, or nil. The lock must be held.
func (s *stream) running() *streamAttempt { return s.find(func(*streamAttempt) bool { return true }) }

// opened returns the oldest attempt that is open and not cancelled, if possible one that takes messages, or nil. The lock must be held.
func (s *stream) opened() *streamAttempt {
	open := func(t *streamAttempt) bool { return t.stream != nil && !s.cancelled(t) }
	t := s.find(func(t *streamAttempt) bool { return open(t) && t.sending != sendsNoMore })
	if t == nil {
		t = s.find(open)
	}
	return t
}

// find returns the oldest attempt of those that run, or of the one that the call is committed to, for which is returns true, or nil.
// The lock must be held.
func (s *stream) find(is func(*streamAttempt) bool) *streamAttempt {
	committed := s.committed()
	for _, a := range s.driver.attempts {
		t := a.ofStream
		if !t.over() && (committed == nil || committed == t) && is(t) {
			return t
		}
	}
	return nil
}
