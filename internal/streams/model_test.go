// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/tools/shrink"
	"github.com/stagger-go/stagger/policy"
)

// model is a stream with random events, over the real engine. It knows only orders and acts. Its failures have the numbers of
// this list:
//
//  1. At most one goroutine sends to an attempt, and one receives from it. CloseSend is sent once.
//  2. Each attempt is reported exactly once, and released, also if OnFinish never comes. Only then Gone reports it.
//  3. The call is over once; permits, breaker, admission and wait slot are settled once.
//  4. The messages sent to an attempt are a prefix of the application's, in order; all of them, before the close.
//  5. The application receives the messages of one attempt, in order; after io.EOF all of them. Headers and context are its too.
//  6. When nothing can move, tasks wait only for a server or a timer, and waking all of them changes nothing.
//  7. When the call's context is over, every call returns without help from the server.
//  8. A call that is given up never looks like a success.
//  9. Kept messages aren't asked for after they were released.
//  10. Messages that had arrived before the call's context ended are still returned.
type model struct {
	accounts

	dice       *dice
	log        *strings.Builder // nil: silent
	engine     attempts.Call
	engineSet  attempts.Settings
	call       Call
	set        Settings
	at         time.Duration
	makes      bool // RecvMsg's message can be made
	wraps      bool // an inner interceptor returns its own errors
	hides      bool // an inner interceptor returns nil in place of io.EOF
	prefetches bool // an inner interceptor receives ahead
	late       bool // the engine starts when something must be decided
	swallows   bool // an inner interceptor drops OnFinish
	limit      int  // of kept messages

	streams  []*grpcStream
	actors   []*actor
	receiver *actor
	buffer   []int
	released bool
	copies   map[*actor]int
	bytes    int
	stored   map[int]int // the messages that goroutines have received
	sends    int
	receives int
	wake     time.Duration
	overdue  int
	gone     policy.Reason // why the call's context is over, or its deadline has passed
	closed   bool          // the context's Done is closed, so gRPC ends the attempts
	noticed  bool          // the goroutine that watches the context has told the machine
	usable   bool
	refused  bool // NewStream has returned an error
	panicked bool // or aborted: anything may be lost
	resumed  bool
	hidden   bool // a message went to an attempt that had ended
	overs    int
	ended    bool // the driver knows that the call is over
	answer   int  // of the call, once it is over
	tells    bool // the caller has an OnFinish
	final    error
	silent   bool // servers do nothing from now on
	nextID   int
	sent     []int
	shown    int   // the attempt that the application has seen
	received []int // by the application
	recvErr  error
}

func (m *model) failf(format string, args ...any) { m.violate(fmt.Sprintf(format, args...)) }

func (m *model) note(format string, args ...any) {
	if m.log != nil {
		fmt.Fprintf(m.log, format+"\n", args...)
	}
}

func (m *model) now() attempts.Now {
	return attempts.Now{At: m.at, Wall: time.Unix(0, int64(m.at)), Chance: 0.5}
}

func (m *model) clock() time.Duration { return m.at }

// hasty reports whether a task does not Enter, if it need not. It is no throw of the dice, so old cases keep their meaning.
func (m *model) hasty() bool { return len(*m.dice)%2 == 0 || m.late && len(*m.dice)%16 != 1 }

// checkNothingToDo checks after an event without Exit that the driver has nothing to do.
func (m *model) checkNothingToDo(who string) {
	if len(*m.dice)%4 != 0 {
		return
	}
	if acts := m.call.acts; len(acts.Go)+len(acts.Report)+len(acts.Cancel) > 0 || acts.Over {
		m.failf("%s leaves something to do: %+v", who, acts)
	}
	goroutines, sends, receives := len(m.actors), m.sends, m.receives
	m.exit()
	if len(m.actors) != goroutines || m.sends != sends || m.receives != receives {
		m.failf("%s leaves something to do", who)
	}
}

func (m *model) enter() {
	if !m.call.Joined() {
		m.call.Join(&m.engine, &m.engineSet)
	}
	m.call.Enter(m.now(), m.gone)
}

// exit carries out the machine's acts.
func (m *model) exit() {
	acts := *m.call.Exit()
	for _, n := range acts.Cancel {
		if n > len(m.streams) {
			m.failf("attempt %d is cancelled and was not sent", n)
			continue
		}
		m.note("cancel %d", n)
		m.streams[n-1].cancelled = true
	}
	if acts.Over != (m.overs > 0 && !m.ended) {
		m.failf("3: the driver is told %v that the call is over", acts.Over)
	}
	m.ended = m.ended || acts.Over
	m.released = m.released && !m.resumed || acts.Released
	for _, n := range acts.Go {
		for len(m.streams) < n {
			m.addStream()
		}
		a := m.spawn(fmt.Sprintf("goroutine %d", n))
		a.task, a.phase = &Task{Kind: Goroutine, Attempt: n}, asking
	}
	for _, e := range acts.Report {
		m.spawnReport("report", e)
	}
	m.wake, m.sends, m.receives = acts.Wake, acts.Sends, acts.Receives
	if acts.Overdue != 0 {
		m.overdue = acts.Overdue
	}
	if acts.Released && !m.resumed {
		m.buffer = nil
	}
	if acts.Moved {
		for _, a := range m.actors {
			if a.phase == waiting {
				a.phase = asking
			}
		}
	}
	m.call.Acted()
}

// Conclude implements [Caller].
func (m *model) Conclude(attempt int) (tell bool, final error) {
	end := m.engine.End()
	if m.call.engine == nil {
		end = &attempts.End{Answer: 1}
	}
	m.note("over: %+v", end)
	m.overs++
	m.answer = attempt
	switch m.final = end.Err; {
	case end.Err == errGivenUp:
		m.failf("8: the call ends as an attempt that was given up for another")
	case end.Answer == 0 && end.Err == nil:
		m.final = errContext
	case end.Err == nil:
		m.final = io.EOF
		m.checkSuccess(end.Answer)
	}
	if tell = m.tells; tell {
		m.spawn("OnFinish of the caller").phase = telling
	}
	return tell, m.final
}

func (m *model) Amend(err error) error {
	if m.call.Stopped() != "" {
		m.failf("R3: the end changes to %v", err)
	}
	m.final = err
	return err
}

func (m *model) addStream() {
	m.streams = append(m.streams, &grpcStream{n: len(m.streams) + 1, first: len(m.received), resumes: m.resumed, before: -1})
}

func (m *model) begin0() {
	m.at = ms(1000)
	m.copies, m.stored = map[*actor]int{}, map[int]int{}
	m.wake = attempts.Never
	if m.late {
		m.call.Init(nil, m, m.set)
		m.call.Begin(m.at)
	} else {
		step := m.engine.Start(&m.engineSet, m.now())
		m.call.Init(&m.engine, m, m.set)
		m.call.Start(m.now(), step)
	}
	m.addStream()
	m.exit()
	m.spawn("opener", NewStream)
}

// see records that the application has seen part of an attempt.
func (m *model) see(n int) {
	if n == 0 {
		return
	}
	if m.shown != 0 && m.shown != n {
		m.failf("5: the application sees attempt %d after %d", n, m.shown)
	}
	m.shown = n
}

// take checks and records a message of an attempt that the application has received.
func (m *model) take(a *actor, n, seq int) {
	m.see(n)
	m.note("%s: has message %d of attempt %d", a.name, seq, n)
	if seq != len(m.received) {
		m.failf("5: message %d of attempt %d after %v", seq, n, m.received)
	}
	m.received = append(m.received, n)
	measured := m.engineSet.Method != nil && m.call.engine != nil && !m.call.Over() && !m.panicked
	if a := m.call.findAttempt(n); measured && !a.claimed && m.counted >= m.engine.Running() {
		m.failf("R5: admission has not heard of the first message of attempt %d", n)
	}
}

// checkWhole checks that the application has all messages when it receives io.EOF.
func (m *model) checkWhole() {
	n := m.shown
	if n == 0 {
		n = m.call.Answer()
	}
	if n == 0 {
		m.failf("5: io.EOF of nothing")
		return
	}
	s := m.streams[n-1]
	if !s.ended || s.err != nil {
		m.failf("8: io.EOF of attempt %d, which has not succeeded", n)
	}
	if want := s.first + s.arrived; len(m.received) != want && m.set.ServerStreams {
		m.failf("5: io.EOF after %d of %d messages", len(m.received), want)
	}
}

// checkSuccess checks that a successful call has a successful attempt.
func (m *model) checkSuccess(n int) {
	if s := m.streams[n-1]; !s.ended || s.err != nil {
		m.failf("8: the call succeeds by attempt %d, which has not", n)
	}
}

// play plays random events until the bytes are used up, and then lets the call end.
func (m *model) play() {
	m.choose()
	m.begin0()
	m.script()
	ends := m.dice.roll(3)
	for m.fault == "" && len(*m.dice) > 0 {
		m.happen()
	}
	m.silent = ends == 1
	m.calm()
	if m.fault == "" && m.gone == "" {
		m.endContext()
		m.calm()
	}
	if m.fault == "" {
		m.checkReturned("7")
		m.sweep()
		m.checkEnd()
	}
}

// happen plays one event.
func (m *model) happen() {
	switch m.dice.roll(16) {
	case 0, 1:
		m.pass(ms(m.dice.roll(30)))
	case 2:
		if m.wake != attempts.Never {
			m.fire()
		}
	case 3, 4, 5, 6:
		if s := m.pick(); s != nil && m.active(s) {
			m.serve(s, m.dice.roll(9))
		}
	case 7:
		if m.gone != "" {
			m.notice()
		} else if m.dice.one(6) {
			m.endContext()
		}
	case 8:
		if s := m.pick(); s != nil && s.opened && m.done(s) && !s.ended {
			m.finish(s, errContext)
		}
	case 9:
		m.rare()
	default:
		var can []*actor
		for _, a := range m.actors {
			if m.can(a) {
				can = append(can, a)
			}
		}
		if len(can) > 0 {
			m.stepOf(can[m.dice.roll(len(can))])
		}
	}
}

func (m *model) stepOf(a *actor) {
	m.bytes = m.copies[a]
	m.step(a)
	if len(m.actors) > 20 {
		m.actors = slices.DeleteFunc(m.actors, func(a *actor) bool { return a.phase == gone })
	}
}

// rare plays a rare event.
func (m *model) rare() {
	switch m.dice.roll(12) {
	case 0:
		m.note("a callback panics")
		m.panicked = true
		m.enter()
		m.call.Abort()
		m.exit()
	case 1:
		if m.overdue != 0 {
			m.isOverdue()
		}
	case 2: // the connection's state has changed
		m.enter()
		m.look(m.call.Wake())
		m.exit()
	case 3, 4:
		if s := m.pick(); s != nil && m.prefetches && s.ended && !s.orphan {
			m.finish(s, s.err)
		}
	case 5, 6, 7: // servers and timers are slow
		for range 100 {
			if a := m.next(); a != nil && m.fault == "" {
				m.stepOf(a)
			} else if m.fault != "" || !m.watch() && !m.notice() {
				m.quiet()
				return
			}
		}
	}
}

// pass lets time pass. A call that has panicked reports the end of its attempt, and waits for nothing.
func (m *model) pass(d time.Duration) {
	m.at += d
	if !slices.ContainsFunc(m.actors, func(a *actor) bool {
		return a.task != nil && a.task.begun && a.task.Kind != Goroutine && a.phase != between && a.phase != gone &&
			(a.phase == told || !a.result.Panicked)
	}) {
		return
	}
	for _, s := range m.streams {
		s.waited += d
	}
}

// look checks that an attempt is slow only if a call has waited for it that long.
func (m *model) look(step attempts.Step) {
	if step.TimedOut && m.streams[step.Decided-1].waited < m.slowAfter() {
		m.failf("R8: attempt %d is slow after %v", step.Decided, m.streams[step.Decided-1].waited)
	}
}

func (m *model) slowAfter() time.Duration {
	if h := m.engineSet.Policy.Hedge(); h != nil {
		return h.HedgingDelay
	}
	return m.engineSet.Policy.PerAttemptTimeout()
}

func (m *model) isOverdue() {
	m.note("attempt %d is overdue", m.overdue)
	m.enter()
	e := m.call.Overdue(m.overdue)
	m.overdue = 0
	m.exit()
	m.spawnReport("overdue", e)
}

func (m *model) pick() *grpcStream {
	if len(m.streams) == 0 {
		return nil
	}
	return m.streams[m.dice.roll(len(m.streams))]
}

// fire lets time pass until the machine wants to wake.
func (m *model) fire() {
	m.pass(max(m.wake-m.at, 0))
	m.wake = attempts.Never
	m.note("wake at %v", m.at)
	m.enter()
	m.look(m.call.Wake())
	m.exit()
}

// endContext ends the call's context: with its deadline, or because the application cancels it. The next task to enter may notice
// that first; the goroutine that watches the context comes later, and Done may close after the deadline.
func (m *model) endContext() {
	m.gone = policy.ReasonCancelled
	if m.dice.one(2) {
		m.gone = policy.ReasonDeadlineExceeded
	}
	m.note("the call's context ends: %s", m.gone)
	m.closed = m.gone == policy.ReasonCancelled || m.dice.one(2)
	for _, s := range m.streams {
		if !s.cancelled {
			s.before, s.endBefore = s.arrived, s.ended
		}
	}
}

// notice plays the rest of the context's end. It returns false if there is none.
func (m *model) notice() bool {
	switch {
	case m.gone == "", m.noticed:
		return false
	case !m.closed:
		m.note("the context's Done closes")
		m.closed = true
	default:
		m.note("the context's end is noticed")
		m.noticed = true
		m.enter()
		m.exit()
	}
	return true
}

// calm plays everything that can still happen, one after the other.
func (m *model) calm() {
	for range 2000 {
		if m.fault != "" {
			return
		}
		switch a := m.next(); {
		case a != nil:
			m.stepOf(a)
		case m.watch():
		case m.notice():
		case !m.quiet():
			return
		case m.wake != attempts.Never:
			m.fire()
		case !m.silent && m.serveLast():
		case m.overdue != 0:
			m.isOverdue()
		default:
			if !m.silent || m.gone != "" {
				m.checkReturned("6")
			}
			return
		}
	}
	m.failf("6: the call does not come to rest")
}

func (m *model) next() *actor {
	for _, a := range m.actors {
		if m.can(a) {
			return a
		}
	}
	return nil
}

// watch plays gRPC's own goroutine of each stream, which ends it with its context.
func (m *model) watch() bool {
	for _, s := range m.streams {
		switch {
		case !s.opened, s.finished:
		case m.done(s):
			m.finish(s, errContext)
			return true
		case m.prefetches && s.ended && !s.orphan:
			m.finish(s, s.err)
			return true
		}
	}
	return false
}

// quiet checks the rules that hold when nothing moves by itself.
func (m *model) quiet() bool {
	if m.call.Over() && len(m.call.running) > 0 && !m.panicked {
		m.failf("2: the call is over, and an attempt was not reported")
	}
	if a := m.call.committed; a != nil && !m.call.Over() && a.live() && !m.blocked() && !a.deaf {
		if !m.released || m.sends != a.number {
			m.failf("9: what was kept is not released, or SendMsg still asks, though nothing is left")
		}
		if m.set.ServerStreams && !m.set.Resumes && a.again && m.receives != a.number {
			m.failf("9: RecvMsg still asks")
		}
	}
	for _, a := range m.call.running {
		switch {
		case a.claimed, a.held():
		case a.finished && a.record != nil && a != m.call.committed:
			m.failf("nobody reports attempt %d, which has ended", a.number)
		}
		if a.live() && !a.deaf && a.sender == idle && m.call.behind(a) {
			m.failf("nobody sends to attempt %d, which is behind", a.number)
		}
	}
	for _, a := range m.actors {
		if a.phase != waiting {
			continue
		}
		m.enter()
		if o := m.call.Ask(a.task); o.Do != Wait {
			m.failf("6: %s waits for what it was not told of: %+v", a.name, o)
			return false
		}
		if acts := m.call.Exit(); len(acts.Go)+len(acts.Report)+len(acts.Cancel) > 0 || acts.Over {
			m.failf("6: waking %s changes something", a.name)
			return false
		}
		m.call.Acted()
		if a.task.Kind != Goroutine && m.wake == attempts.Never && !m.blocked() {
			m.failf("6: %s (%d) waits, and nobody waits for a server", a.name, a.task.Kind)
			return false
		}
	}
	return true
}

// blocked reports whether an actor is inside gRPC, where only a server can help.
func (m *model) blocked() bool {
	return slices.ContainsFunc(m.actors, func(a *actor) bool { return a.phase == inside })
}

// serveLast makes the servers end the streams that still run.
func (m *model) serveLast() bool {
	for i, s := range m.streams {
		if m.active(s) {
			m.endStream(s, 5+i%4)
			return true
		}
	}
	return false
}

// checkReturned checks that no call of the application still waits.
func (m *model) checkReturned(rule string) {
	for _, a := range m.actors {
		if a.phase == waiting && a.task.Kind != Goroutine || a.phase == inside {
			m.failf("%s: %s (%d) does not return: %+v", rule, a.name, a.task.Kind, a.order)
		}
	}
}

// sweep reports the ends that no task has reported, some time after the end of the context.
func (m *model) sweep() {
	m.enter()
	m.call.Gone()
	acts := m.call.acts
	for _, e := range acts.Report {
		if s := m.streams[e.Attempt-1]; s.heard && !m.panicked {
			m.failf("2: only Gone reports attempt %d, though OnFinish has come", s.n)
		}
	}
	m.exit()
	m.calm()
}

// checkEnd checks the rules that hold when everything is over.
func (m *model) checkEnd() {
	if m.fault != "" {
		return
	}
	if m.call.Answer() != m.answer {
		m.failf("R3: the answer changes from attempt %d to %d after the end", m.answer, m.call.Answer())
	}
	if m.overs != 1 {
		m.failf("3: the call is over %d times", m.overs)
	}
	if m.finished == 0 && !m.panicked {
		m.failf("3: the budget was not told of the call's end")
	}
	m.violateIf(m.settled())
	for _, s := range m.streams {
		if s.reported != 1 && !m.panicked {
			m.failf("2: attempt %d is reported %d times", s.n, s.reported)
		}
		if s.openers != 0 && !s.cancelled && !s.finished {
			m.failf("2: attempt %d is not released", s.n)
		}
	}
	for _, took := range m.answered {
		if !slices.ContainsFunc(m.streams, func(s *grpcStream) bool { return slices.Contains(s.heardAt, took) }) {
			m.failf("R8: an answer took %v", took)
		}
	}
	for _, a := range m.actors {
		if a.phase == waiting {
			m.failf("2: %s has not ended", a.name)
		}
	}
	m.checkDrained()
}

func (m *model) violateIf(what string) {
	if what != "" {
		m.violate(what)
	}
}

// checkDrained checks that the application received all messages that had arrived when its context ended.
func (m *model) checkDrained() {
	n := m.shown
	if n == 0 && len(m.streams) == 1 {
		n = 1
	}
	if n == 0 || m.panicked || m.recvErr == nil || m.refused {
		return
	}
	s := m.streams[n-1]
	if s.before < 0 {
		return
	}
	if s.endBefore && s.err == nil && m.recvErr != io.EOF && (m.set.ServerStreams || s.before > 0) {
		m.failf("10: the end had arrived before that of the call's context, and RecvMsg returns %v", m.recvErr)
	}
	if m.set.ServerStreams && len(m.received) < s.first+s.before {
		m.failf("10: %d of %d messages were lost at the end of the call's context", s.first+s.before-len(m.received), s.first+s.before)
	}
}

// playBytes plays the bytes as events of a call. It returns what is wrong, and logs all events if there is a log.
func playBytes(data []byte, log *strings.Builder) (err error) {
	d := dice(data)
	m := &model{dice: &d, log: log}
	defer func() {
		if p := recover(); p != nil && log == nil {
			err = fmt.Errorf("panic: %v", p)
		} else if p != nil {
			m.note("panic: %v", p)
			panic(fmt.Sprint(p, "\n", log.String()))
		}
	}()
	m.play()
	if m.fault != "" {
		return errors.New(m.fault)
	}
	return nil
}

// report returns the events that lead to a failure, with the fewest bytes.
func report(data []byte) string {
	data = shrink.Bytes(data, func(data []byte) bool { return playBytes(data, nil) != nil })
	var log strings.Builder
	err := playBytes(data, &log)
	return fmt.Sprintf("%v\n%sbytes: %q", err, log.String(), data)
}

var many = flag.Int("many", 1, "how many `times` as many random calls to make")

func TestModel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(rand.Uint64(), 0)) // a failure prints its bytes
	buffer := make([]byte, 400)
	for range 10_000 * *many {
		data := buffer[:random.IntN(len(buffer))]
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if playBytes(data, nil) != nil {
			t.Fatal(report(data))
		}
	}
}

func FuzzCalls(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if playBytes(data[:min(len(data), 1000)], nil) != nil {
			t.Fatal(report(data))
		}
	})
}
