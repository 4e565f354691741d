// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// race is the wait for the first message, or for headers, of a stream with one request whose attempts may be slow. Until then the call
// is like a unary one, and has the same driver: the next attempt follows beside a slow one, or in its place. The one that is answered
// first wins, and the others are cancelled.
type race struct {
	s       *stream
	driver  driver
	want    decision.Commit          // what commits the call: the first message, or headers
	message any                      // RecvMsg receives into it
	kept    keptReply                // message before the first attempt
	replies protoreflect.MessageType // of messages for goroutines of ours
	won     *streamAttempt
}

var _ driven = (*race)(nil)

// race makes attempts until one has what the application waits for, and commits the stream to it. It returns false if there is none: the call
// is over. It must run inside decide: until the race is over, other operations wait.
func (s *stream) race(want decision.Commit, m any, kept keptReply) bool {
	r := &race{s: s, want: want, message: m, kept: kept, replies: s.findReplies(want, m)}
	r.driver.init(&s.call, r)
	r.driver.run(r.begin)
	won := r.won
	if s.engine.Over() {
		won = r.conclude()
	} else {
		s.newest = won
		s.committed.Store(won)
		s.releaseLog(want)
	}
	if won == nil {
		return false
	}
	if won.ownReply {
		copyReply(m, won.reply)
	}
	won.reply = nil
	return true
}

// findReplies returns the type of messages for goroutines of ours. If the application waits for a message, and there is no such type,
// attempts don't run in parallel. It must run inside decide.
func (s *stream) findReplies(want decision.Commit, m any) (replies protoreflect.MessageType) {
	s.inSequence = false
	if want == decision.CommitMessage {
		replies = s.replyType(m)
		s.inSequence = replies == nil
		s.warnInSequence()
	}
	s.set.InSequence = s.inSequence
	return replies
}

// observeRace begins, in mode OBSERVE, a wait for which ENFORCE would race. It must run inside decide.
func (s *stream) observeRace(want decision.Commit, m any) {
	s.findReplies(want, m)
	s.due = s.engine.Await(attempts.Now{At: clock.Now()}).Wake
}

// decideDue decides what was due while an operation waited, before the operation reports what it has found. Only mode OBSERVE has anything
// to decide so late.
func (s *stream) decideDue() {
	if s.entry.mode != policy.ModeObserve {
		return
	}
	s.lock()
	s.decide(s.reportDue)
}

// reportDue is decideDue inside decide.
func (s *stream) reportDue() {
	if s.due > clock.Now() {
		return
	}
	now := s.now()
	now.At, s.due = s.due, attempts.Never
	now.Down, now.Connecting = false, false // the attempt has a connection, whatever became of it since
	step := s.engine.Wake(now)
	s.notifyDecision(&step, nil, nil)
}

// conclude ends the call. It returns the attempt with the message that the application waits for: the one reply of a stream that has only
// one; otherwise nil.
func (r *race) conclude() *streamAttempt {
	var answer *streamAttempt
	if n := r.s.engine.End().ResultOf; n > 0 {
		answer = r.driver.sent(n).ofStream
	}
	r.s.conclude(answer)
	if r.s.final == nil && r.want == decision.CommitMessage && !r.s.desc.ServerStreams {
		return answer
	}
	return nil
}

// begin returns the attempt that was sent the request.
func (r *race) begin() *attempt {
	now := r.s.now()
	step := r.s.engine.Await(now)
	r.driver.schedule(&step, now.At)
	return &r.s.newest.attempt
}

// newAttempt implements driven.
func (r *race) newAttempt(n int, at time.Duration, ours bool) *attempt {
	t := r.s.add(*r.s.laterAttempt(n, at))
	t.ownReply = ours && r.want == decision.CommitMessage
	return &t.attempt
}

// try implements driven: an attempt that is answered first wins, and goes on.
func (r *race) try(a *attempt) (result attempts.Result, now attempts.Now, ended bool) {
	t := a.ofStream
	ended, err := r.awaitAnswer(t)
	if !ended {
		r.driver.locked(func() { ended = !r.win(t) })
		err = errGivenUp
	}
	if ended {
		result, now = r.s.takeResult(t, err)
	}
	return result, now, ended
}

// awaitAnswer waits for what the application waits for from an attempt, or for the attempt's end.
func (r *race) awaitAnswer(t *streamAttempt) (ended bool, err error) {
	if t.stream == nil {
		ended, err = r.s.replay(t)
		if ended {
			return true, err
		}
	}
	if r.want == decision.CommitHeaders {
		return r.awaitHeaders(t)
	}
	return r.receive(t)
}

// awaitHeaders waits for the headers of an attempt, or for its end.
func (r *race) awaitHeaders(t *streamAttempt) (ended bool, err error) {
	defer r.s.limitWait(t)()
	return t.findEnd()
}

// receive receives the first message of an attempt, or its end, which is also a message if there is only one.
func (r *race) receive(t *streamAttempt) (ended bool, err error) {
	t.reply = r.message
	switch {
	case t.ownReply:
		t.reply = r.replies.New().Interface()
	case t.number > 1:
		r.kept.restore()
	}
	defer r.s.limitWait(t)()
	err = t.stream.RecvMsg(t.reply)
	return err != nil || !r.s.desc.ServerStreams, endOf(err)
}

// win commits the call to an attempt, unless another one has won. The driver's lock must be held.
func (r *race) win(t *streamAttempt) bool {
	now := r.s.now()
	step, ok := r.s.engine.Commit(t.number, r.want, now)
	r.driver.act(&step, now.At, false)
	if !ok {
		return false
	}
	if r.want == decision.CommitMessage {
		t.answered = true
		r.s.engine.Heard(t.number, now)
	}
	r.won = t
	r.driver.serve()
	return true
}

// errGivenUp is the error of an attempt that another one has outrun.
var errGivenUp = status.Error(codes.Canceled, "given up for another attempt")
