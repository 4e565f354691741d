// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/streams"
)

// task is a call of the application, or the goroutine of an attempt, with the data for its orders.
type task struct {
	streams.Task

	order   streams.Order // the last one
	on      *streamAttempt
	result  streams.Result // of the last order
	done    bool           // result is set
	end     streams.End    // to be reported by the task
	version int            // the stream's, when the task had to wait

	message any             // SendMsg sends it, RecvMsg receives into it
	before  keptReply       // RecvMsg's message, before the first receive
	bytes   encoded         // SendMsg's message
	encoded bool            // bytes are set, to be kept
	kept    encoded         // sent instead of message
	replies messageType     // the type of message, if attempts race
	context context.Context // the call's
	reply   any             // a goroutine's, to receive into or received
	headers metadata.MD
	stream  grpc.ClientStream // just opened

	err    error // of gRPC's last call
	over   bool  // the call is over
	caught caught
}

// run carries out the machine's orders until the task is over. A call that has used an attempt
// directly starts with the result of that. If an inner interceptor or a callback has panicked in one of our
// goroutines, run repeats the panic in a call of the application.
func (s *stream) run(t *task) {
	if s.lend(t) {
		if s.do(t); t.result.Panicked || t.err == nil && s.giveBack(t) {
			return
		}
		s.turn(t)
	}
	for {
		s.notify()
		switch {
		case t.end.Attempt != 0:
			s.reportEnd(t.end, t)
			continue
		case t.order.Do == streams.Wait:
			s.wait(t.version)
		case t.order.Do == streams.Return:
			if t.Kind != streams.Goroutine {
				t.caught.rethrow()
			}
			return
		default:
			if s.do(t); t.result.Panicked {
				return
			}
		}
		s.turn(t)
	}
}

// lend takes the first order of a task: lent, if nothing need be decided, without clock, chance and the channel's state. It
// returns false for an order of turn.
func (s *stream) lend(t *task) (lent bool) {
	s.mu.Lock()
	if t.encoded {
		s.keep(t)
	}
	if !t.done && t.Kind != streams.Goroutine {
		t.order, lent = s.machine.Lend(&t.Task, clock.Now)
	}
	if !lent {
		s.turnLocked(t)
		return false
	}
	t.on = s.attempts[t.order.Attempt-1]
	s.mu.Unlock()
	return true
}

// giveBack ends a task whose lent order has succeeded, and returns false if more is to be done.
func (s *stream) giveBack(t *task) bool {
	if t.Kind == streams.RecvMsg { // always
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeResult(t)
	return s.machine.GiveBack(&t.Task, clock.Now)
}

// turn locks s.mu, as enter does, reports the result of the last order to the machine, and takes the
// next.
func (s *stream) turn(t *task) {
	s.mu.Lock()
	s.turnLocked(t)
}

// turnLocked is turn, and unlocks s.mu.
func (s *stream) turnLocked(t *task) {
	defer s.mu.Unlock()
	returned := false
	defer func() {
		t.version = s.version
		if !returned {
			s.abort(recover())
			t.end, t.order = streams.End{}, streams.Order{Do: streams.Wait} // asks again
			t.version = s.version - 1                                       // at once: nothing else may ever wake it
		}
	}()
	s.look()
	if s.next(t) {
		s.equip(t)
	}
	s.act(s.machine.Exit())
	returned = true
}

// next reports the result of the last order to the machine, and takes the next. It returns false if the task must first
// report the end of an attempt. s.mu must be held.
func (s *stream) next(t *task) bool {
	t.end = streams.End{}
	if t.replies.makes() {
		s.replies = t.replies
	}
	if t.done {
		s.storeResult(t)
		t.done = false
		if t.end = s.machine.Done(&t.Task, t.result); t.end.Attempt != 0 {
			return false
		}
	}
	t.order = s.machine.Ask(&t.Task)
	return true
}

// equip sets the task's data for its order. s.mu must be held.
func (s *stream) equip(t *task) {
	if t.on = nil; t.order.Attempt > 0 {
		t.on = s.attempts[t.order.Attempt-1]
	}
	switch {
	case t.order.Do == streams.Return:
		s.returns(t)
	case t.order.Do == streams.Send && t.Kind == streams.Goroutine:
		t.kept = s.replay.message(t.order.Message)
	case t.order.Do == streams.Receive && t.Kind == streams.Goroutine:
		t.replies = s.replies
	}
}

// keep adds SendMsg's message to the replay buffer, once. If it can't be kept, t.Commit says why. s.mu must be held.
func (s *stream) keep(t *task) {
	if t.encoded = false; !s.machine.Keeps() {
		t.Commit = decision.CommitNone
		return
	}
	switch {
	case t.Commit != decision.CommitNone:
	case s.replay.appendMessage(t.bytes):
		t.Kept = true
	default:
		t.Commit = decision.CommitBufferFull
	}
}

// storeResult stores the result of an order in its attempt. s.mu must be held.
func (s *stream) storeResult(t *task) {
	switch a := t.on; {
	case t.err != nil:
	case t.order.Do == streams.Open:
		a.stream = t.stream
	case t.order.Do == streams.GetHeader && t.headers != nil:
		a.headers = t.headers
	case t.order.Do == streams.Receive && t.Kind == streams.Goroutine:
		a.message = t.reply
	}
}

// returns sets the data that the task needs to return. s.mu must be held.
func (s *stream) returns(t *task) {
	t.context = s.call.ctx
	if s.machine.Over() {
		t.over, t.caught = true, s.caught
	}
	if a := t.on; a != nil {
		t.headers, t.stream = a.headers, a.stream
		if t.order.Returns == streams.Brought {
			t.reply, a.message = a.message, nil
		}
	}
}

// wait waits until the stream has another version.
func (s *stream) wait(version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.version == version {
		s.changed.Wait()
	}
}

// do makes the gRPC call of the task's order.
func (s *stream) do(t *task) {
	t.result, t.done = streams.Result{Panicked: true}, true
	returned := false
	defer func() {
		if !returned {
			s.panicked(t, recover())
		}
	}()
	a, r := t.on, &t.result
	switch t.order.Do {
	case streams.Open:
		t.stream, t.err = s.open(a.ctx, s.desc, s.call.cc, s.call.method, a.options...)
	case streams.Send:
		var m any
		if m, t.err = s.copyOf(t); t.err != nil {
			r.Unsendable = true
		} else {
			t.err = a.stream.SendMsg(m)
		}
	case streams.Close:
		t.err = a.stream.CloseSend()
	case streams.GetHeader:
		if t.headers, t.err = a.stream.Header(); t.headers == nil && t.err == nil && t.order.Status {
			t.err = a.statusWithoutHeaders()
		}
		r.Headers = t.headers != nil
	default:
		t.err = s.receiveInto(t)
	}
	r.Err, r.Panicked, returned = t.err, false, true
}

// statusWithoutHeaders returns the error of an attempt that ended without headers, or nil after success. gRPC's Header may
// return before gRPC knows the status, and then reports success to OnFinish. No more messages can arrive.
func (a *streamAttempt) statusWithoutHeaders() error {
	if err := a.stream.RecvMsg(new(emptypb.Empty)); err != io.EOF {
		return err
	}
	return nil
}

// copyOf returns the message to send: the application's the first time, then copies.
func (s *stream) copyOf(t *task) (any, error) {
	switch {
	case t.Kind == streams.Goroutine:
		return t.kept.decode()
	case t.order.Again && (t.Kept || t.Commit == decision.CommitBufferFull):
		return encoded{data: slices.Clone(t.bytes.data), of: t.bytes.of}.decode()
	default:
		return t.message, nil
	}
}

func (s *stream) receiveInto(t *task) error {
	if t.Kind == streams.Goroutine {
		t.reply = t.replies.newMessage()
		return t.on.stream.RecvMsg(t.reply)
	}
	switch {
	case t.before.reply != nil:
		t.before.restore()
	case s.receives.Load() == nil || s.resume.next != nil: // another attempt may follow
		t.before.keep(t.message, s.call.options.codec)
	}
	return t.on.stream.RecvMsg(t.message)
}

// panicked ends the call after an inner interceptor has panicked with p, or called Goexit, in the task. In a call
// of the application, the panic continues. From one of our goroutines, the application's next call repeats it.
func (s *stream) panicked(t *task, p any) {
	var end streams.End
	again := t.Task // a copy, so that t itself doesn't escape
	s.enter(func() {
		s.caught.note(p)
		end = s.machine.Done(&again, streams.Result{Panicked: true})
	})
	s.reportEnd(end, nil)
	if t.Kind != streams.Goroutine && p != nil {
		on := caught{happened: true, value: p}
		on.rethrow()
	}
}
