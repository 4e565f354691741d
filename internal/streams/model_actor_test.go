// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
)

// actor is a goroutine of the application, of an attempt, or one that reports an end.
type actor struct {
	name   string
	phase  phase
	script []Kind // calls to come
	task   *Task
	direct bool // the call has not asked
	lent   bool // its role was lent
	order  Order
	stream *grpcStream
	result Result
	end    End
	id     int // of the message that it sends
	loops  bool
	got    *grpcStream // the last message of its RecvMsg; nil: none
	gotSeq int
	own    error
}

type phase uint8

const (
	between phase = iota // before its next call
	asking
	waiting // until something has changed
	inside  // inside gRPC
	told    // has returned from gRPC
	cancelling
	reporting
	telling // runs the caller's OnFinish
	gone
)

// requestForRest is the number of the resume request, as a message.
const requestForRest = 1000

func (m *model) spawn(name string, script ...Kind) *actor {
	a := &actor{name: name, script: script}
	m.actors = append(m.actors, a)
	return a
}

func (m *model) spawnReport(name string, e End) {
	if e.Attempt != 0 {
		a := m.spawn(name)
		a.phase, a.end = cancelling, e
	}
}

// can reports whether an actor can act.
func (m *model) can(a *actor) bool {
	switch a.phase {
	case between:
		return len(a.script) > 0 && (m.usable || a.script[0] == NewStream)
	case inside:
		return m.ready(a)
	case waiting, gone:
		return false
	default:
		return true
	}
}

// step makes an actor act once.
func (m *model) step(a *actor) {
	switch a.phase {
	case between:
		m.begin(a)
	case asking:
		m.ask(a)
	case inside:
		a.result = m.perform(a)
		m.note("%s: attempt %d: %v of %v: %v", a.name, a.stream.n, a.order.Do, a.stream.arrived, a.result)
		m.leaveStream(a)
		a.phase = told
	case told:
		m.tell(a)
	case cancelling:
		if s := m.streams[a.end.Attempt-1]; !s.cancelled {
			s.cancelled = true
		}
		a.phase = reporting
	case reporting:
		m.report(a)
	case telling:
		m.note("the caller is told")
		a.phase = gone
		m.enter()
		m.call.Told()
		m.exit()
	}
}

// begin starts the next call of the application, without asking if that is allowed.
func (m *model) begin(a *actor) {
	kind := a.script[0]
	a.script = a.script[1:]
	a.task, a.direct, a.lent, a.got, a.own = &Task{Kind: kind}, false, false, nil, nil
	a.phase = asking
	n := m.receives
	if kind == SendMsg || kind == CloseSend {
		n = m.sends
	}
	if kind == SendMsg {
		a.id = m.nextID
		m.nextID++
		m.sent = append(m.sent, a.id)
	}
	if n == 0 || kind == NewStream || kind == Context {
		if kind == RecvMsg {
			a.task.Makes = m.makes
		}
		return
	}
	a.direct = true
	a.task.Attempt, a.task.Makes = n, m.makes
	do := map[Kind]Do{SendMsg: Send, CloseSend: Close, RecvMsg: Receive, Header: GetHeader}[kind]
	m.goInside(a, Order{Do: do, Attempt: n})
}

func (m *model) ask(a *actor) {
	if t := a.task; t.Kind == SendMsg && !t.begun {
		if m.call.Keeps() && len(m.buffer) < m.limit {
			t.Kept = true
			m.buffer = append(m.buffer, a.id)
		} else {
			t.Commit = decision.CommitBufferFull
		}
	}
	if !a.task.begun && m.hasty() {
		if o := (Order{}); m.call.Lend(a.task, &o, m.clock) {
			a.lent = true
			m.goInside(a, o)
			m.checkNothingToDo(a.name)
			return
		}
	}
	m.enter()
	m.order(a)
}

// order gives an actor its next order.
func (m *model) order(a *actor) {
	o := m.call.Ask(a.task)
	if o.Do == Send && a.task.Kind == Goroutine {
		if o.Message >= len(m.buffer) {
			m.failf("9: attempt %d is to be sent message %d of %v", o.Attempt, o.Message, m.buffer)
			return
		}
		m.copies[a] = m.buffer[o.Message]
	}
	if o.Do == Receive && a.task.Kind == Goroutine && !m.call.receiving {
		m.failf("R7: %s receives ahead", a.name)
	}
	m.exit()
	switch o.Do {
	case Wait:
		a.phase = waiting
		if a.task.Kind == SendMsg && a.task.Kept && !m.set.Races && !m.call.Over() {
			m.failf("SendMsg waits with a message that is kept")
		}
	case Return:
		m.note("%s: %d returns %v of %d", a.name, a.task.Kind, o.Returns, o.Attempt)
		m.returned(a, o)
	default:
		m.goInside(a, o)
	}
}

// goInside makes an actor call gRPC, after checking that no other actor is in its way.
func (m *model) goInside(a *actor, o Order) {
	s := m.streams[o.Attempt-1]
	a.phase, a.order, a.stream = inside, o, s
	m.note("%s: %d does %v on %d", a.name, a.task.Kind, o.Do, o.Attempt)
	switch o.Do {
	case Open:
		if s.openers++; s.openers > 1 {
			m.failf("1: attempt %d is opened twice", s.n)
		}
		return
	case Send, Close:
		if s.sender != nil {
			m.failf("1: two send to attempt %d", s.n)
		}
		s.sender = a
		if o.Do == Close && len(s.sent) < len(m.buffer) && !s.resumes && !s.ended && !m.done(s) && m.call.committed == nil {
			m.failf("4: attempt %d is closed before it has everything", s.n)
		}
	default:
		for _, other := range s.receivers {
			if other.receives() == a.receives() && a.order.Do == Receive || other.receives() == 0 || a.receives() == 0 {
				m.failf("1: %s and %s receive from attempt %d", other.name, a.name, s.n)
			}
		}
		s.receivers = append(s.receivers, a)
	}
	if !s.opened {
		m.failf("1: attempt %d is not open", s.n)
	}
}

// receives returns RecvMsg or Header if the actor's call may run in parallel with the other of these, else 0.
func (a *actor) receives() Kind {
	if a.task.Kind == RecvMsg || a.task.Kind == Header {
		return a.task.Kind
	}
	return 0
}

func (m *model) leaveStream(a *actor) {
	if a.stream.sender == a {
		a.stream.sender = nil
	}
	a.stream.receivers = slices.DeleteFunc(a.stream.receivers, func(other *actor) bool { return other == a })
	if a.order.Do == Receive && a.result.Err == nil {
		a.got, a.gotSeq = a.stream, a.stream.first+a.stream.received-1
	}
	a.own = a.result.Err
}

// tell reports the result of an actor's gRPC call.
func (m *model) tell(a *actor) {
	if a.direct && m.quick(a) {
		return
	}
	a.direct = false
	if a.order.Do == Receive && a.task.Kind == Goroutine && a.result.Err == nil {
		m.stored[a.stream.n] = a.gotSeq
	}
	a.stream.heardAt = append(a.stream.heardAt, a.stream.waited-a.stream.asked)
	if a.order.Do == Close {
		a.stream.asked = a.stream.waited
	}
	if a.lent && a.result.Err == nil && !a.result.Panicked && m.call.GiveBack(a.task, m.clock) {
		m.checkNothingToDo(a.name)
		m.returned(a, Order{Do: Return})
		return
	}
	if m.atOnce(a) {
		return
	}
	m.enter()
	e := m.call.Done(a.task, a.result)
	m.exit()
	a.lent, a.phase = false, asking
	if a.result.Panicked {
		a.phase, a.script = gone, nil
	}
	if e.Attempt != 0 {
		a.end, a.phase, a.loops = e, cancelling, !a.result.Panicked
	}
}

// atOnce takes a result about which nothing is to be decided, before the engine has started.
func (m *model) atOnce(a *actor) bool {
	if a.result.Panicked || m.done(a.stream) {
		return false
	}
	took, heard, ok := m.call.AtOnce(a.task, a.result.Err, m.at)
	if heard && m.engineSet.Method != nil {
		if m.answered = append(m.answered, took); len(m.answered) > 1 {
			m.failf("R5: attempt %d is heard twice", a.stream.n)
		}
	}
	if ok && m.call.Over() {
		a.stream.reported++
		a.stream.cancelled = true
		m.Observe(clock.Time(m.at), budget.EventCallSucceeded)
	}
	if a.lent = a.lent && !ok; ok {
		m.order(a)
	}
	return ok
}

// quick ends a call that used an attempt without asking, if it has nothing to report.
func (m *model) quick(a *actor) bool {
	if a.result.Panicked {
		return false
	}
	err := a.result.Err
	switch a.task.Kind {
	case SendMsg:
		if err == nil || err == io.EOF {
			m.back(a, err)
			return true
		}
	case CloseSend:
		m.back(a, nil)
		return true
	case RecvMsg:
		if err == nil {
			m.take(a, a.got.n, a.gotSeq)
			m.back(a, nil)
			return true
		}
	default:
		if a.result.Headers {
			m.see(a.stream.n)
			m.back(a, nil)
			return true
		}
	}
	return false
}

// report reports an end.
func (m *model) report(a *actor) {
	e := a.end
	a.end = End{}
	s := m.streams[e.Attempt-1]
	s.reported++
	s.heardAt = append(s.heardAt, s.waited-s.asked)
	if s.reported > 1 {
		m.failf("2: attempt %d is reported twice", s.n)
	}
	err := e.Err
	switch {
	case e.GivenUp && m.call.Stopped() != "":
		err = errContext
	case e.GivenUp:
		err = errGivenUp
	case e.Panicked:
		err = errFatal
	}
	r := attempts.Result{Err: err, Panicked: e.Panicked, Local: err == errContext || err == errGivenUp}
	r.Status = status.Convert(err)
	if err == nil {
		r.Status = nil
	}
	rest := e.Received && err != nil && m.set.Resumes && len(m.received) > 0 && m.dice.one(2)
	m.enter()
	if rest && !m.call.Over() {
		r.Resumes, r.Progress = true, true
		m.buffer = []int{requestForRest}
		m.resumed = true
	}
	m.note("%s: reports attempt %d: %v, resumes %v", a.name, e.Attempt, status.Code(err), r.Resumes)
	was := m.call.committed
	step := m.call.Ended(e, r, r.Resumes)
	m.look(step)
	if step.Decision.Retry && err == errTooLarge && step.Decided == s.n {
		m.failf("attempt %d is retried, though a message could not be sent for a reason on this side", s.n)
	}
	if was != nil && m.call.committed == nil && !m.call.Over() {
		m.shown = 0
	}
	m.exit()
	a.phase = gone
	if a.loops {
		a.phase, a.loops = asking, false
	}
}

// returned checks and records the result of a call.
func (m *model) returned(a *actor, o Order) {
	if a.task.Kind == Goroutine {
		a.phase = gone
		return
	}
	err := a.own
	switch o.Returns {
	case Nil, Brought:
		err = nil
	case EOF:
		err = io.EOF
	case Final:
		if !m.call.Over() {
			m.failf("%s returns the end of a call that goes on", a.name)
		}
		if err = o.Err; err == nil || err != m.final {
			m.failf("R3: %s (%d) returns %v; the call has ended with %v", a.name, a.task.Kind, err, m.final)
		}
		if !m.call.told {
			m.failf("R3: %s (%d) returns the end before the caller is told", a.name, a.task.Kind)
		}
	}
	if a.task.Kind == RecvMsg && (err != nil || !m.set.ServerStreams) && !m.call.told {
		m.failf("R3: RecvMsg returns the end before the caller is told")
	}
	switch a.task.Kind {
	case NewStream:
		m.usable = err == nil
		m.refused = err != nil
	case RecvMsg:
		switch {
		case o.Returns == Brought:
			m.take(a, o.Attempt, m.stored[o.Attempt])
		case err == nil && a.got == nil:
			m.failf("5: RecvMsg returns nothing")
		case err == io.EOF && !m.set.ServerStreams && len(m.received) == 0 && !m.panicked:
			m.failf("5: RecvMsg returns io.EOF in place of the reply")
		case err == nil:
			m.take(a, a.got.n, a.gotSeq)
		}
	case Header, Context:
		m.see(o.Attempt)
	case SendMsg:
		if err == nil && !a.task.Kept && o.Returns == Nil && !m.resumed && !m.hidden && m.set.ClientStreams && !slices.ContainsFunc(m.streams, func(s *grpcStream) bool { return slices.Contains(s.sent, a.id) }) {
			m.failf("4: SendMsg returns nil, and message %d is neither kept nor sent", a.id)
		}
	}
	m.back(a, err)
}

// hasBrought reports whether the application has messages of the attempt that it sees: those before a resumption are of another.
func (m *model) hasBrought() bool { return slices.Contains(m.received, m.shown) }

// back ends a call of the application.
func (m *model) back(a *actor, err error) {
	a.phase = between
	switch kind := a.task.Kind; {
	case kind == SendMsg && err != nil:
		a.script = slices.DeleteFunc(a.script, func(k Kind) bool { return k == SendMsg })
	case kind == RecvMsg && err != nil:
		if m.recvErr != nil && m.recvErr != err {
			m.failf("5: RecvMsg returns %v after %v", err, m.recvErr)
		}
		m.recvErr = err
		if m.wraps && m.gone == "" && !m.panicked && err == errFatal && m.hasBrought() && m.streams[m.shown-1].err == errFatal {
			m.failf("5: RecvMsg returns gRPC's word in place of an inner interceptor's")
		}
		if err == io.EOF {
			m.checkWhole()
			if m.final == errContext && m.call.Stopped() != "" && !m.closed && !m.prefetches && !m.panicked && m.hasBrought() {
				m.failf("8: RecvMsg returns io.EOF before the context is done, and the call has ended with %v", m.final)
			}
		}
		a.script = a.script[:min(1, len(a.script))]
	}
	if len(a.script) == 0 {
		a.phase = gone
	}
}
