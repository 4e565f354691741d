// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/streams"
	"github.com/stagger-go/stagger/policy"
)

// streamAttempt is one attempt of a stream. The stream's lock guards all fields except attempt and spoiled. Once set, they don't
// change.
type streamAttempt struct {
	attempt

	of      *stream
	stream  grpc.ClientStream // nil if it isn't open yet, or opening failed
	headers metadata.MD       // received
	message any               // received by its goroutine, until the application has it
	spoiled bool              // it has failed, and has received something into the application's message that can't be undone; its receiver's
}

// attempt returns attempt n, and prepares it if it is new. s.mu must be held.
func (s *stream) attempt(n int) *streamAttempt {
	if n > len(s.attempts) {
		t := new(streamAttempt)
		s.attempts = append(s.attempts, t)
		s.prepare(t, n, clock.Now())
	}
	return s.attempts[n-1]
}

// prepare sets up t as attempt n, which is about to be opened. s.mu must be held.
func (s *stream) prepare(t *streamAttempt, n int, at time.Duration) {
	if n == 1 {
		t.attempt = s.call.firstAttempt(t.attemptOptions, at)
	} else {
		t.attempt = *s.call.laterAttempt(n, at)
	}
	t.ctx, t.cancel = context.WithCancel(t.ctx)
	t.of, t.onEnd = s, t
}

// onFinish runs when gRPC has ended the attempt, in any goroutine.
func (a *streamAttempt) onFinish(err error) {
	a.of.mu.Lock()
	held := a.of.machine.FinishHeld(a.number, err)
	a.of.mu.Unlock()
	if held {
		return // the task that is inside gRPC reports it
	}
	var end streams.End
	a.of.enter(func() { end = a.of.machine.Finish(a.number, err) })
	a.of.reportEnd(end, nil)
}

// errGivenUp is the error of an attempt that was replaced by another, or is no longer needed.
var errGivenUp = status.Error(codes.Canceled, "given up for another attempt")

// givenUp returns the error of an abandoned attempt: the call's own end, if gone, the machine's reason for it, is the cause.
func givenUp(gone policy.Reason) error {
	switch gone {
	case policy.ReasonDeadlineExceeded:
		return status.FromContextError(context.DeadlineExceeded).Err()
	case policy.ReasonCancelled:
		return status.FromContextError(context.Canceled).Err()
	case policy.ReasonClosed:
		return errConnClosing
	default:
		return errGivenUp
	}
}

// errPanicked is the error of an attempt that has panicked, and of a call whose observer has.
var errPanicked = status.Error(codes.Unknown, "the call panicked")

// reportEnd reports the end of an attempt to the engine, and queues its events. It is called once per end. The task that does, if
// any, then asks again. If the classifier or the function of Resume panics, the call is over.
func (s *stream) reportEnd(e streams.End, by *task) {
	if by != nil {
		by.end, by.order, by.version = streams.End{}, streams.Order{Do: streams.Wait}, -1 // if it panics: asks immediately
	}
	if e.Attempt == 0 {
		return
	}
	s.mu.Lock()
	t := s.attempts[e.Attempt-1]
	opened, gone := t.stream != nil, s.machine.Stopped()
	s.mu.Unlock()
	var r attempts.Result
	var request encoded
	resumes := false
	judge := func() {
		r = s.judge(t, e, opened, gone)
		if e.Received && e.Err != nil && !r.Local {
			resumes = s.rest(&request)
		}
	}
	if !s.outside(judge) {
		return
	}
	s.enter(func() {
		if e.Err != nil || e.GivenUp {
			s.lookAround()
		}
		if !s.machine.Over() { // else a panic ended the call meanwhile
			if resumes && s.replay.replace(&request) {
				r.Resumes, r.Progress, s.resume.progress = true, s.resume.progress, false
			}
			step := s.machine.Ended(e, r, r.Resumes)
			s.queueEnd(t, r.Err, &step)
		}
		if by != nil {
			by.version = s.version
			s.next(by)
			s.equip(by)
		}
	})
}

// judge returns the result of an attempt. It waits for gRPC's own end of the attempt, which may still write trailer and peer.
// gone is why the call has ended, or "": whether its deadline has passed is decided once, by the machine's clock.
func (s *stream) judge(t *streamAttempt, e streams.End, opened bool, gone policy.Reason) attempts.Result {
	now := s.call.now()
	if e.Panicked {
		t.cancel()
		t.took = now.At - t.began
		return attempts.Result{Err: errPanicked, Panicked: true}
	}
	err := e.Err
	if e.GivenUp || status.Code(err) == codes.Canceled && gone == policy.ReasonDeadlineExceeded {
		err = givenUp(gone) // the watcher of the context may have cancelled it before the call's deadline did
	}
	if closed(s.call.cc) && strings.HasSuffix(messageOf(err), connClosing) {
		err = errConnClosing // Header wraps it
	}
	local, over := s.call.local(&t.attempt, err, now), t.ctx.Err() != nil
	if t.cancel(); opened && (over || err != nil && !answered(err)) { // else gRPC has ended it in the goroutine that noticed the end
		t.awaitEnd()
	}
	r := s.call.judge(&t.attempt, nil, err, local, now)
	if t.spoiled {
		s.call.endSpoiled(&r)
	}
	return r
}

// queueEnd queues the events for the end of an attempt and for the decision after it. s.mu must be held.
func (s *stream) queueEnd(t *streamAttempt, err error, step *attempts.Step) {
	if s.call.retrier.observers.Load().attempts {
		s.events.push(notice{new(s.call.attemptEvent(&t.attempt, err)), tellAttempt})
	}
	s.events.push(s.call.noticesOf(step, &t.attempt, err)...)
}

// outside runs a user's function without the lock. It returns false if the function has panicked; then the call is
// over.
func (s *stream) outside(f func()) (returned bool) {
	defer func() {
		if !returned {
			p := recover()
			s.enter(func() { s.caught.note(p); s.machine.Abort() })
		}
	}()
	f()
	return true
}

// nap is a wait for the next attempt while none runs.
type nap struct {
	until time.Duration
	watch bool
}

// schedule wakes the engine at the time that it has requested. While no attempt runs, gRPC does not watch the
// context and the connection, so a goroutine does. s.mu must be held.
func (s *stream) schedule(a *streams.Acts) {
	switch {
	case a.Wake == attempts.Never:
	case a.Idle:
		if s.nap == nil || s.nap.until != a.Wake || s.nap.watch != a.Watch {
			s.nap = &nap{a.Wake, a.Watch}
			go s.sleep(s.nap)
		}
	case a.Wake < s.armed:
		s.armTimer(a.Wake)
	}
	if a.Overdue > 0 {
		t := s.attempts[a.Overdue-1]
		s.overdue = time.AfterFunc(leftTime, func() { s.overdueEnd(t) })
	}
}

// armTimer sets the timer. s.mu must be held.
func (s *stream) armTimer(at time.Duration) {
	s.armed = at
	switch in := at - clock.Now(); {
	case in <= 0:
		go s.wake() // a timer would be useless, and two at the same time crash the race detector in a synctest bubble
	case s.timer == nil:
		s.timer = time.AfterFunc(in, s.wake)
	default:
		s.timer.Reset(in)
	}
}

func (s *stream) sleep(n *nap) {
	s.call.sleep(n.until, n.watch)
	s.enter(func() {
		if s.nap == n {
			s.nap = nil
		}
		s.wakeEngine()
	})
}

func (s *stream) wake() {
	s.enter(func() {
		s.armed = attempts.Never
		s.wakeEngine()
	})
}

// wakeEngine makes the engine check the time and the channel again. s.mu must be held.
func (s *stream) wakeEngine() {
	now := s.lookAround()
	s.call.connect(now)
	step := s.machine.Wake()
	s.events.push(s.call.noticesOf(&step, nil, nil)...)
}

// overdueEnd reports the end of an attempt that only an inner interceptor has noticed, because the application stopped receiving.
func (s *stream) overdueEnd(a *streamAttempt) {
	var end streams.End
	s.enter(func() { end = s.machine.Overdue(a.number) })
	s.reportEnd(end, nil)
}

// gone runs when the call's context is over. OnFinish reports it for each attempt, unless an inner interceptor doesn't pass
// on its options.
func (s *stream) gone() {
	s.enter(func() {
		for _, t := range s.attempts {
			t.cancel() // the first attempt may have begun before the policy's timeout was known
		}
		if !s.machine.Over() {
			time.AfterFunc(longestEnd, func() { s.enter(func() { s.machine.Gone() }) })
		}
	})
}
