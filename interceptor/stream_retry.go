// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
)

// locked runs f with the lock, and then tells the caller and observers if the call has ended. If f panics, the call is over.
func (s *stream) locked(f func()) {
	returned := false
	s.mu.Lock()
	defer func() {
		if !returned {
			s.abort()
		}
		untold, final := s.untold, s.final
		s.untold = false
		s.mu.Unlock()
		if untold {
			s.tell(final)
		}
	}()
	f()
	returned = true
}

// unlocked runs f without the lock, which must be held.
func (s *stream) unlocked(f func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	f()
}

// withRetry runs an operation on the newest attempt, and on the next one if that fails, until one succeeds. Then it runs done, with the
// lock. It returns false if the call is over, or committed to an attempt that refuses the operation.
func (s *stream) withRetry(op func(t *streamAttempt) error, done func(t *streamAttempt)) (ok bool) {
	s.locked(func() { ok = s.retry(op, done) })
	return ok
}

// retry is withRetry. The lock must be held; op runs without it.
func (s *stream) retry(op func(t *streamAttempt) error, done func(t *streamAttempt)) bool {
	for !s.over {
		t := s.newest()
		var err error
		s.unlocked(func() { err = op(t) })
		if err == errRefused && !s.over && t == s.newest() {
			err = s.findEnd(t)
			if err == errRefused {
				return false
			}
		}
		switch {
		case t != s.newest(): // another operation has found its end
		case err == nil:
			done(t)
			return true
		case !s.over:
			s.attemptEnded(t, err)
		}
	}
	return false
}

// findEnd finds how an attempt has ended that refuses an operation. If it has headers, the application may receive its messages: that
// commits the call, and RecvMsg returns how it has ended. The lock must be held, so that nobody commits the call meanwhile.
func (s *stream) findEnd(t *streamAttempt) error {
	if headers, _ := t.stream.Header(); headers != nil {
		s.commit(t, decision.CommitHeaders)
	}
	if s.direct.Load() != nil {
		return errRefused
	}
	err := t.receiveEnd()
	if err == nil {
		return errRefused // of an inner interceptor that answers without headers
	}
	return err
}

// receiveEnd returns how an attempt without headers has ended.
func (t *streamAttempt) receiveEnd() error {
	t.receiving.Lock()
	defer t.receiving.Unlock()
	return t.stream.RecvMsg(new(emptypb.Empty))
}

// attemptEnded reports that an attempt has ended with err, nil after success. It makes the next ones, until one has everything in the log,
// or the call is over. The lock must be held.
func (s *stream) attemptEnded(t *streamAttempt, err error) {
	for {
		r, now := s.takeResult(t, endOf(err))
		n, at := s.awaitNext(&t.attempt, r, now)
		if n == 0 {
			s.conclude()
			return
		}
		t = s.add(*s.laterAttempt(n, at))
		if err = s.replay(t); err == nil {
			return
		}
	}
}

// takeResult returns the result of an attempt that has ended with err. It waits for gRPC's own end, which may still write trailer and
// peer. A stream that was cut may be resumed: then the request for the rest replaces the log.
func (s *stream) takeResult(t *streamAttempt, err error) (attempts.Result, attempts.Now) {
	now := s.now()
	if closed(s.cc) && strings.HasSuffix(messageOf(err), connClosing) {
		err = errConnClosing // Header wraps it
	}
	local := s.local(&t.attempt, err, now)
	t.noteReport() // before an inner interceptor's second stream with the same options can end
	t.cancel()
	if t.stream != nil && (local || err != nil && !isResponse(err)) {
		t.awaitEnd()
	}
	r := s.resultOf(&t.attempt, nil, err, local, now)
	if t.spoiled {
		s.endSpoiled(&r)
	}
	if err != nil && !local && s.direct.Load() != nil && s.rest() {
		r.Resumes, r.Progress = true, s.resume.progress
		s.resume.progress = false
		s.direct.Store(nil)
		clear(s.made[:len(s.made)-1]) // a stream may be resumed for ever
	}
	return r, now
}

// replay opens an attempt, and sends it what is in the log.
func (s *stream) replay(t *streamAttempt) (err error) {
	t.stream, err = s.open(t.ctx, s.desc, s.cc, s.method, t.options...)
	if err != nil {
		return err
	}
	for _, e := range s.log.messages {
		m, err := e.decode()
		if err == nil {
			err = t.stream.SendMsg(m)
		}
		if err != nil {
			return s.endOfReplay(t, err)
		}
	}
	if s.log.closed {
		_ = t.stream.CloseSend() // as in gRPC, RecvMsg says if that has failed
	}
	return nil
}

// endOfReplay returns how an attempt has ended that did not take what was kept, for the reason err. If it has headers, that is left to the
// next operation, since messages may come first.
func (s *stream) endOfReplay(t *streamAttempt, err error) error {
	if err != io.EOF {
		return err
	}
	if headers, _ := t.stream.Header(); headers != nil {
		return nil
	}
	return t.receiveEnd()
}

// add makes an attempt the newest one.
func (s *stream) add(a attempt) *streamAttempt {
	t := &streamAttempt{attempt: a, receiving: newGate()}
	t.ofStream, t.onEnd = t, s.attemptFinished
	t.ctx, t.cancel = context.WithCancel(t.ctx)
	s.made = append(s.made, t)
	return t
}

// newest returns the attempt that the call is committed to, or else the last one that was made.
func (s *stream) newest() *streamAttempt {
	if t := s.direct.Load(); t != nil {
		return t
	}
	return s.made[len(s.made)-1]
}

// commit makes an attempt the only one, unless the call is committed already. The lock must be held.
func (s *stream) commit(t *streamAttempt, why decision.Commit) {
	if s.over || s.direct.Load() != nil {
		return
	}
	s.engine.Commit(t.number, why, attempts.Now{At: clock.Now()})
	s.direct.Store(t)
	s.log.release()
}

// beginWait begins the time of an attempt, if that has the whole request: the application waits for a response. If attempts may be slow, it
// reports so, and race begins their time. A stream of many requests has none that is slow. The lock must be held.
func (s *stream) beginWait() (watched bool) {
	whole := s.log.closed || !s.desc.ClientStreams && len(s.log.messages) > 0
	if !whole || s.over || s.direct.Load() != nil {
		return false
	}
	s.set.RequestFollows = false // later attempts have the request at once
	if s.entry.policy.Watched() && !s.desc.ClientStreams {
		return true
	}
	s.engine.Requested(s.newest().number, s.now())
	return false
}

// conclude ends the call. The lock must be held.
func (s *stream) conclude() {
	s.over, s.untold = true, true
	var t *streamAttempt
	reported := &unreported
	if n := s.end().Answer; n > 0 {
		t = s.made[n-1]
		reported = t.reported()
	}
	s.final = s.answer(reported)
	s.shown = s.final
	if t != nil && t.stream == nil {
		t = nil
	}
	s.direct.Store(t)
	s.log.release()
	if s.unwatch != nil {
		s.unwatch()
	}
}

// abort ends the call after a panic. The lock must be held.
func (s *stream) abort() {
	if s.over {
		return
	}
	for _, t := range s.made {
		if t != nil {
			t.cancel()
		}
	}
	if !s.engine.Over() {
		s.engine.Abort(s.now())
	}
	s.conclude()
}

// tell runs the caller's OnFinish, and tells observers of the end.
func (s *stream) tell(final error) {
	defer s.cancelTimeout() // after the observers, who may make calls
	defer s.notifyEnd(final)
	s.options.tellFinished(final)
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
	s.locked(func() {
		if !s.over {
			s.attemptEnded(s.newest(), err)
		}
	})
}
