// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"io"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/grpctext"
	"github.com/stagger-go/stagger/policy"
)

// lock takes the lock, when no goroutine decides. Only code of this package runs with it.
func (s *stream) lock() {
	s.mu.Lock()
	for s.deciding {
		s.changed.Wait()
	}
}

// decide gives up the lock, which must be held, and runs f while all who want it wait. Then it tells the caller and observers if the call
// has ended. If f panics, the call is over.
func (s *stream) decide(f func()) {
	s.deciding = true
	s.mu.Unlock()
	returned := false
	defer func() {
		if !returned {
			defer s.decided()
			s.abort()
			return
		}
		if s.decided() {
			s.tell()
		}
	}()
	f()
	returned = true
}

// decided ends the time in which others wait, and reports whether the call's end is to be told.
func (s *stream) decided() (untold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	untold, s.untold = s.untold, false
	s.deciding = false
	s.changed.Broadcast()
	return untold
}

func (s *stream) isOver() bool {
	over, _ := s.outcome()
	return over
}

// outcome returns whether the call has ended, and with which error; nil: with success.
func (s *stream) outcome() (over bool, final error) {
	s.lock()
	defer s.mu.Unlock()
	return s.over, s.final
}

// withRetry runs an operation on the newest attempt, and on the next one if that fails, until one succeeds. Then it runs done, with the
// lock. An operation returns io.EOF if its attempt has ended, and RecvMsg says how. withRetry returns false if the call is over, or
// committed to an attempt that has ended.
func (s *stream) withRetry(op func(t *streamAttempt) error, done func(t *streamAttempt)) bool {
	for {
		s.lock()
		t, over := s.newest, s.over
		s.mu.Unlock()
		if over {
			return false
		}
		err := s.pass(func() error { return op(t) })
		s.mu.Lock()
		for s.deciding || err == io.EOF && s.receivesFrom(t) { // RecvMsg returns now, and says how the attempt has ended
			s.changed.Wait()
		}
		switch {
		case t != s.newest: // another operation has found its end
			s.mu.Unlock()
		case err == nil:
			if !s.over {
				done(t)
			}
			s.mu.Unlock()
			return true
		case s.over, err == io.EOF && s.committed.Load() != nil:
			s.mu.Unlock()
			return false
		default:
			s.decide(func() { s.operationFailed(t, err) })
			if s.committed.Load() == t {
				return false
			}
		}
	}
}

// operationFailed finds how an attempt has ended on which an operation has failed with err, and decides what follows. If the application may
// receive messages of the attempt, that commits the stream, and RecvMsg returns how it has ended.
func (s *stream) operationFailed(t *streamAttempt, err error) {
	if err == io.EOF {
		ended, end := t.findEnd()
		if !ended {
			s.commit(t, decision.CommitHeaders)
			return
		}
		err = end
	}
	s.attemptEnded(t, err, false)
}

// findEnd returns how an attempt has ended that takes no more messages, or has no headers. ended is false if messages may come before its
// end: it has headers, or gRPC has not ended it, as if an inner interceptor answers without headers.
func (t *streamAttempt) findEnd() (ended bool, err error) {
	headers, _ := t.stream.Header()
	if headers != nil || !t.ended() {
		return false, nil
	}
	err = t.stream.RecvMsg(new(emptypb.Empty))
	return err != nil, endOf(err)
}

// attemptEnded reports that an attempt has ended with err; received says that RecvMsg has returned it. It makes the next ones, until one has
// everything in the log, or the call is over. It must run inside decide.
func (s *stream) attemptEnded(t *streamAttempt, err error, received bool) {
	s.reportDue()
	for {
		r, now := s.takeResult(t, err)
		if received && s.committed.Load() == t {
			s.resumeCommitted(&r)
		}
		n, at := s.awaitNext(&t.attempt, r, now)
		if n == 0 {
			s.conclude(t)
			return
		}
		t = s.add(*s.laterAttempt(n, at))
		var ended bool
		ended, err = s.replay(t)
		if !ended {
			return
		}
	}
}

// takeResult returns the result of an attempt that has ended with err, and ends its context. It waits for gRPC's own end, which may still
// write trailer and peer.
func (s *stream) takeResult(t *streamAttempt, err error) (attempts.Result, attempts.Now) {
	now := s.now()
	if closed(s.cc) && strings.HasSuffix(grpctext.Message(err), connClosing) {
		err = errConnClosing // Header wraps it
	}
	silent := s.endedSilent(t, err)
	if silent {
		err = s.errSilent()
	}
	t.noteReport() // before an inner interceptor's second stream with the same options can end
	contextEnded := s.contextEnded(&t.attempt, err, now)
	t.noteEnd(now.At)
	t.cancel()
	if t.stream != nil && (contextEnded || silent || err != nil && !isResponse(err)) {
		t.awaitEnd()
	}
	t.noteReport()
	r := s.resultOf(&t.attempt, nil, err, contextEnded, now)
	s.warnOfFailure(&t.attempt, err)
	r.Silent = silent
	if s.resume.next != nil && err != nil && !contextEnded && s.committed.Load() == nil {
		r.Resumes = t.resumes || !silent && now.At-t.began >= attempts.LongRun // else it is an ordinary failure before the first message
	}
	return r, now
}

// resumeCommitted makes the next attempt resume a committed stream, if it can. The request for the rest replaces the log. Only RecvMsg
// resumes: what the function of the Resume option gets belongs to it.
func (s *stream) resumeCommitted(r *attempts.Result) {
	if s.resume.next == nil || r.Err == nil || r.ContextEnded || !s.makeRest() {
		return
	}
	r.Resumes, r.Progress = true, s.resume.progress
	s.resume.progress = false
	s.committed.Store(nil)
}

// replay opens an attempt, and sends it what is in the log. It returns the end of one that has ended meanwhile.
func (s *stream) replay(t *streamAttempt) (ended bool, err error) {
	t.stream, err = s.open(t.ctx, s.desc, s.cc, s.method, t.options...)
	if err != nil {
		return true, err
	}
	err = s.log.replay(t.stream.SendMsg)
	switch {
	case err == io.EOF: // if it has headers, the next operation finds the end
		return t.findEnd()
	case err != nil:
		return true, err
	case s.log.closed:
		_ = t.stream.CloseSend() // as in gRPC, RecvMsg says if that has failed
	}
	return false, nil
}

// add makes an attempt the newest one.
func (s *stream) add(a attempt) *streamAttempt {
	t := &streamAttempt{attempt: a}
	t.ofStream, t.onEnd, t.over = t, s.attemptFinished, make(chan struct{})
	t.resumes = s.resume.asked
	t.ctx, t.cancel = context.WithCancel(t.ctx)
	s.newest = t
	return t
}

// commit makes an attempt the only one, unless the stream is committed already. The lock must be held, or s is deciding.
func (s *stream) commit(t *streamAttempt, why decision.Commit) {
	if s.over || t != s.newest || s.committed.Load() != nil {
		return
	}
	s.engine.Commit(t.number, why, attempts.Now{At: clock.Now()})
	s.committed.Store(t)
	s.releaseLog(why)
}

// releaseLog drops what was sent, once the stream is committed. A stream with the Resume option keeps its request while the application
// has seen no message: a quiet one may be cut before that.
func (s *stream) releaseLog(why decision.Commit) {
	if s.resume.next == nil || why != decision.CommitHeaders && why != decision.CommitContext {
		s.log.release()
	}
}

// commitNewest commits the stream to its newest attempt, and returns the one to which it is committed; nil: it is over without an answer.
func (s *stream) commitNewest(why decision.Commit) *streamAttempt {
	s.lock()
	defer s.mu.Unlock()
	s.commit(s.newest, why)
	return s.committed.Load()
}

// beginReceive returns the attempt from which RecvMsg receives the first message into m; nil: the call is over without an answer. If others
// may be sent beside it, beginReceive returns races, with the lock.
func (s *stream) beginReceive(m any) (t *streamAttempt, races bool) {
	s.lock()
	if s.beginWait() {
		if s.entry.mode == policy.ModeEnforce {
			return nil, true
		}
		s.decide(func() { s.observeRace(decision.CommitMessage, m) })
		s.lock()
	}
	defer s.mu.Unlock()
	if s.over {
		return s.committed.Load(), false
	}
	s.receiving = true
	return s.newest, false
}

// receivesFrom reports whether RecvMsg is inside gRPC, and finds how the attempt ends. The lock must be held.
func (s *stream) receivesFrom(t *streamAttempt) bool { return s.receiving && t == s.newest && !s.over }

// received reports the first message of an attempt.
func (s *stream) received(t *streamAttempt) {
	s.lock()
	defer s.mu.Unlock()
	t.answered = true
	s.receiving = false
	s.changed.Broadcast()
	if s.over { // its context has ended meanwhile
		return
	}
	s.commit(t, decision.CommitMessage)
	s.log.release()
	s.engine.Heard(t.number, attempts.Now{At: clock.Now()})
}

// beginWait notes that the application waits for a response. It reports whether attempts may be slow: then race makes them, or observeRace
// begins their time. A stream of many requests has none that is slow. The lock must be held.
func (s *stream) beginWait() (watched bool) {
	s.awaited = true
	waits := !s.over && s.committed.Load() == nil && !s.receiving // a RecvMsg that began before the request was sent is inside gRPC
	if !waits || !s.whole || s.desc.ClientStreams || !s.entry.policy.Watched() {
		s.timeAttempts()
		return false
	}
	return true
}

// timeAttempts begins the time of attempts, once the server has the whole request and the application waits. The lock must be held.
func (s *stream) timeAttempts() {
	if s.whole && s.awaited && !s.over {
		s.engine.Await(attempts.Now{At: clock.Now()})
	}
}

// noteWhole notes that the application has sent everything.
func (s *stream) noteWhole() {
	s.lock()
	defer s.mu.Unlock()
	if !s.whole {
		s.whole = true
		s.timeAttempts()
	}
}

// receivedEnd reports that RecvMsg has returned the end of an attempt. It returns whether the call is over, and then what the application gets.
func (s *stream) receivedEnd(t *streamAttempt, err error) (over bool, shown error) {
	s.lock()
	s.receiving = false
	switch {
	case s.over: // its context has ended meanwhile, or long ago: a server may have said more than that
		s.changed.Broadcast()
		s.mu.Unlock()
		if isResponse(err) {
			return true, withNewer(s.final, err)
		}
		return true, cmp.Or(s.final, err)
	case t != s.newest: // another operation has found its end
		s.changed.Broadcast()
		s.mu.Unlock()
		return false, nil
	}
	s.decide(func() { s.attemptEnded(t, err, true) })
	return s.outcome()
}

// endWithoutHeaders reports the end of an attempt whose Header has found, as in gRPC, that there are none. RecvMsg says how it has ended: gRPC
// calls OnFinish without an error for an attempt that never left a connection that was closed. The application's RecvMsg finds the end by
// itself if it may be inside gRPC, and if it may resume the stream.
func (s *stream) endWithoutHeaders(t *streamAttempt) {
	s.lock()
	if s.over || t != s.newest || s.receiving || t.answered || s.resume.next != nil {
		s.mu.Unlock()
		return
	}
	s.decide(func() {
		if ended, err := t.findEnd(); ended {
			s.attemptEnded(t, err, false)
		}
	})
}

// endWith reports that SendMsg has ended an attempt with err. It returns what SendMsg returns: the call's error, or err if the call has
// ended otherwise.
func (s *stream) endWith(t *streamAttempt, err error) error {
	s.lock()
	if s.over || t != s.newest {
		s.mu.Unlock()
		return err
	}
	s.decide(func() { s.attemptEnded(t, err, false) })
	_, final := s.outcome()
	return cmp.Or(final, err)
}

// conclude ends the call. t has its response; nil: none. It must run inside decide.
func (s *stream) conclude(t *streamAttempt) {
	reported := &unreported
	if s.engine.End().ResultOf == 0 {
		t = nil
	}
	if t != nil {
		reported = &t.report
	}
	s.final = s.giveResult(reported)
	if t != nil && t.stream == nil {
		t = nil
	}
	s.release(t)
	s.untold = true
}

// release ends the stream, whose operations then go to t, and releases what it keeps.
func (s *stream) release(t *streamAttempt) {
	s.over = true
	s.committed.Store(t)
	s.log.release()
	if s.unwatch != nil {
		s.unwatch()
	}
}

// abort releases what the call holds while a panic goes up. It must run inside decide.
func (s *stream) abort() {
	if s.over {
		return
	}
	defer s.cancelTimeout()
	if s.newest != nil {
		s.newest.cancel()
	}
	s.final = attempts.ErrPanicked
	s.release(nil)
	s.abortUnlessOver()
}

// tell runs the caller's OnFinish, and tells observers of the end.
func (s *stream) tell() {
	defer s.cancelTimeout() // after the observers, who may make calls
	s.options.tellFinished(s.final)
	s.notifyEnd(s.final)
}

// contextOver runs when the call's context is over. An operation that is inside gRPC may find that first.
func (s *stream) contextOver() { s.endUnfound(status.FromContextError(s.ctx.Err()).Err()) }

// attemptFinished is gRPC's OnFinish of an attempt. Closing the connection ends the call, too.
func (s *stream) attemptFinished() {
	if closed(s.cc) {
		go s.endUnfound(errConnClosing)
	}
}

// endUnfound ends the call, unless an operation has found its end.
func (s *stream) endUnfound(err error) {
	s.lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.decide(func() { s.attemptEnded(s.newest, err, false) })
}
