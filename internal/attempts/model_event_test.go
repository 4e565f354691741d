// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package attempts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// newModel makes a random policy, world and call.
func newModel(list []*policy.Policy, call *Call, data []byte) *model {
	d := dice(data)
	w := &modelWorld{dice: &d}
	w.world = world{grants: 100, slots: 100, open: map[int64]bool{}}
	m := &model{modelWorld: w, call: call, wake: Never, idleSince: Never, now: Now{At: at(1000)}}
	m.set = Settings{Policy: list[d.roll(256)], Deadline: Never, Budget: w, Slots: w}
	if d.one(3) {
		w.grants = d.roll(4)
	}
	if d.one(3) {
		w.slots = d.roll(2)
	}
	m.set.Safe, m.set.InRetry = !d.one(4), d.one(4)
	if d.one(2) {
		m.set.Method = modelMethod{w}
		if d.one(2) {
			m.set.Admission = modelAdmission{w}
		}
		w.quantile = at(d.roll(50))
		w.shows = []evidence.Evidence{
			quick, quick, quick, quick, {}, {Known: 4}, {Known: 10, Slow: 3}, {Known: 10, Slow: 10, VerySlow: 10},
		}[d.roll(8)]
	}
	if d.one(4) {
		m.set.Breaker = modelBreaker{w}
	}
	if d.one(4) {
		w.fuse = 1 + d.roll(40)
	}
	if d.one(2) {
		m.set.Outage.Longest = at(1 + 10*d.roll(100))
	}
	if d.one(2) {
		m.set.Deadline = m.now.At + at(5*d.roll(256))
	}
	if d.one(4) {
		m.set.MaxAttempts = 1 + d.roll(5)
	}
	m.set.InSequence = d.one(4)
	m.set.AnnounceOnly = d.one(8)
	m.set.Enforced = !m.set.AnnounceOnly
	m.look()
	return m
}

// look sets the driver's state for an event that happens now.
func (m *model) look() {
	m.now.Wall, m.now.Chance = time.Unix(0, int64(m.now.At)), float64(m.dice.roll(256))/256
	m.now.Off = m.off
}

// play plays events until the bytes are used up, and then lets the call end.
func (m *model) play() {
	m.start()
	for calm := 0; m.fault == "" && (len(*m.dice) > 0 || !m.over && calm < 100); {
		if len(*m.dice) == 0 {
			calm++
			m.calm()
			continue
		}
		if m.over && m.dice.one(2) {
			return
		}
		m.pass()
		m.happen()
	}
	if m.fault == "" && !m.over {
		m.failf("13: the call does not end")
	}
}

// pass advances the time.
func (m *model) pass() {
	switch m.dice.roll(4) {
	case 1:
		m.now.At += time.Duration(m.dice.roll(256)) * time.Millisecond / 4
	case 2:
		m.now.At += at(m.dice.roll(256))
	}
	m.deadline()
}

// calm brings the call to its end: running attempts end, and waiting ones are woken.
func (m *model) calm() {
	m.fuse = 0
	if list := m.runningNumbers(); len(list) > 0 {
		m.end(list[0])
		return
	}
	m.wakeAt(0)
}

// happen plays one event.
func (m *model) happen() {
	switch m.dice.roll(15) {
	case 0, 1, 2:
		m.wakeAt(0)
	case 3, 4, 5, 6:
		if list := m.runningNumbers(); len(list) > 0 {
			m.end(list[m.dice.roll(len(list))])
		}
	case 7:
		m.wakeUp()
	case 8:
		m.commit(m.dice.roll(len(m.attempts)+2), []decision.Commit{decision.CommitMessage, decision.CommitHeaders, decision.CommitBufferFull}[m.dice.roll(3)])
	case 9:
		m.now.Down, m.flipped = !m.now.Down, true
		m.note("the channel is down: %v", m.now.Down)
		if m.watch {
			m.wakeUp()
		}
	case 10:
		m.rare()
	case 13:
		m.now.Connecting = !m.now.Connecting
		m.note("the channel connects: %v", m.now.Connecting)
	case 11:
		m.wakeUp()
	case 12:
		m.hear(m.dice.roll(len(m.attempts) + 2))
	default:
		m.wakeAt(at(1 + m.dice.roll(100)))
	}
}

// rare plays a rare event.
func (m *model) rare() {
	switch m.dice.roll(5) {
	case 0:
		m.stop([]policy.Reason{policy.ReasonCancelled, policy.ReasonClosed}[m.dice.roll(2)])
	case 1: // events that make no sense now
		n := m.dice.roll(len(m.attempts)+3) - 1
		if n < 1 || n > len(m.attempts) || !m.attempts[n-1].running {
			m.event(notCancelled, func() Step { return m.call.Ended(n, Result{}, m.now) }, nil, "end %d, which does not run", n)
		}
	case 2:
		if m.dice.one(2) {
			m.note("an observer panics")
			m.abort()
		}
	case 3:
		m.off, m.flipped = []policy.Reason{policy.ReasonClosed, policy.ReasonModeOff}[m.dice.roll(2)], true
		m.note("nothing may be sent any more: %s", m.off)
		m.wakeUp()
	default:
		m.stop(policy.ReasonCancelled)
	}
}

// hear reports the first message of attempt n, which may be any number.
func (m *model) hear(n int) {
	want := 0
	if n >= 1 && n <= len(m.attempts) && m.attempts[n-1].running && m.attempts[n-1].cancelled == notCancelled {
		a := &m.attempts[n-1]
		a.slowAt = Never
		if !a.heard {
			a.heard, a.heardIn = true, m.now.At-a.began
			want = m.measured(a)
		}
	}
	recorded := len(m.recorded)
	_, ok := m.event(notCancelled, func() Step {
		m.call.Heard(n, m.now)
		return m.call.Await(m.now)
	}, nil, "heard %d", n)
	if got := len(m.recorded) - recorded; ok && got != want {
		m.failf("5: %d latencies of attempt %d; want %d", got, n, want)
	}
}

// measured returns how many latencies are recorded for an answer to the attempt now.
func (m *model) measured(a *modelAttempt) int {
	if m.set.Method == nil || a.unmeasured {
		return 0
	}
	return 1
}

// wakeAt advances the time until the call wants to wake, and by later.
func (m *model) wakeAt(later time.Duration) {
	if m.wake != Never {
		m.now.At = max(m.now.At, m.wake) + later
	}
	if !m.deadline() && m.wake != Never {
		m.inTime = m.now.At == m.wake
		m.wakeUp()
		m.inTime = false
	}
}

// deadline reports a passed deadline to the call, before any other event.
func (m *model) deadline() bool {
	if m.now.At < m.set.Deadline || m.stopped != "" || m.over {
		return false
	}
	m.stop(policy.ReasonDeadlineExceeded)
	return true
}

func (m *model) wakeUp() {
	early := m.now.At < m.wake && !m.flipped
	m.flipped = false
	m.postpone()
	before, watch, asks, told := m.wake, m.watch, m.asks, len(m.told)
	step, ok := m.event(replaced, func() Step { return m.call.Wake(m.now) }, nil, "wake")
	changed := len(step.Cancel) > 0 || step.Send != 0 || step.Decided != 0 || step.Over || step.Wake != before || step.Watch != watch
	switch {
	case !ok:
	case early && (changed || len(m.told) != told):
		m.failf("12: an early wake leads to %+v; before, the call wanted to wake at %v", step, before)
	case m.now.At >= before && !changed && step.Slow == asks: // when a pending attempt is dropped, the one that runs may have been slow before
		m.failf("13: a wake in time changes nothing")
	}
}

// start begins the call. Half of the calls that ask nobody before the first attempt join later.
func (m *model) start() {
	m.began = m.now.At
	set := m.set
	m.event(notCancelled, func() Step {
		if set.Breaker == nil && set.Method == nil && m.fuse == 0 && m.now.Chance < 0.5 {
			return m.call.Join(&set, m.now.At)
		}
		return m.call.Start(&set, m.now)
	}, nil, "start %s", describe(set))
}

// end ends an attempt that runs.
func (m *model) end(n int) {
	a := &m.attempts[n-1]
	r, name := m.result(a)
	if !a.heard && a.committed == "" && r.Seen() && m.dice.one(8) {
		r.Origin, name = decision.Unseen, name+" unseen"
		if m.dice.one(2) {
			r.Origin, name = decision.FromInterceptor, name+" from an interceptor"
		}
	}
	if r.Err != nil && (r.Origin == decision.FromInterceptor || r.unused() && !m.dice.one(4)) { // else there was no connection
		r.LocalError, name = true, name+" local error"
	}
	m.reached = m.reached || r.Seen()
	a.running = false
	m.running--
	if m.running == 0 {
		m.idleSince = m.now.At
	}
	followed := m.followed(n)
	was := m.settled()
	m.unsent = r.Origin == decision.Unsent
	m.event(outrun, func() Step { return m.call.Ended(n, r, m.now) }, func(step Step) {
		m.checkEnded(n, a, &r, step, was)
		m.ended(n, a, &r, step, followed)
	}, "end %d %s", n, name)
	m.unsent = false
}

// settled is what the world was told before an event.
type settled struct{ told, fails, recorded, charges int }

func (m *model) settled() settled {
	m.done = nil
	return settled{told: len(m.told), fails: m.fails, recorded: len(m.recorded), charges: m.charges}
}

// checkEnded checks the reports of the end of attempt n.
func (m *model) checkEnded(n int, a *modelAttempt, r *Result, step Step, was settled) {
	told := m.told[was.told:]
	gone := m.stopped != ""
	hung := a.slow && r.ContextEnded && compiled.Of(m.set.Policy).Hedge == nil
	lost := a.cancelled == outrun || m.answer != 0 || gone && a.cancelled == replaced && r.ContextEnded
	err := r.Err
	switch {
	case r.Again && r.Well:
		err = nil
	case r.Again && r.Err == nil:
		err = errFailedReply
	case hung:
		err = errTimedOut
	case lost && r.ContextEnded && r.Seen() && (!gone || m.answer != 0):
		err = nil
	}
	if m.set.Breaker != nil && (len(m.done) != 1 || status.Code(m.done[0]) != status.Code(err)) {
		m.failf("5: the breaker hears %v of attempt %d; want %v", m.done, n, err)
	}
	if m.set.Breaker != nil && errors.Is(m.done[0], ErrLocal) != (r.LocalError && err != nil) {
		m.failf("5: the breaker hears %v of attempt %d, whose error is this client's: %v", m.done, n, r.LocalError)
	}
	if r.unused() && slices.Contains(told, "-") {
		m.failf("5: an extra attempt that no server has seen costs something")
	}
	if fails := m.fails - was.fails; fails > 1 || hung && r.Seen() && fails != 1 || !r.Seen() && fails != 0 {
		m.failf("5: %d failures at the end of attempt %d", fails, n)
	}
	in := m.now.At - a.began
	if a.heard {
		in = a.heardIn
	}
	final := r.Err != nil && r.isAnswer(decision.Classify(m.set.Policy, &r.Outcome, m.now.Wall))
	fast := m.fast(a, in)
	if helped := slices.Contains(told, "+"); helped && (lost || !r.Seen() || !accepts(r) && !final || !fast) {
		m.failf("5: the permit of attempt %d has helped", n)
	}
	if accepts(r) && !lost && r.Seen() && n > 1 && slices.Contains(told, "-") && fast {
		m.failf("5: the permit of attempt %d has not helped", n)
	}
	if r.Origin == decision.Unsent && (slices.Contains(told, "-") || step.Decided != 0 && n > 1 && m.charges != was.charges) {
		m.failf("5: attempt %d was not sent, and its permit is settled, or its successor pays again", n)
	}
	answers := accepts(r) && a.committed == "" && !r.ContextEnded || lost && r.ContextEnded && a.slow && in > 0
	want := m.measured(a) == 1 && r.Seen() && !a.heard && answers
	if list := m.recorded[was.recorded:]; want != (len(list) == 1) || want && list[0] != in {
		m.failf("5: the latencies %v are recorded of attempt %d, which took %v", list, n, m.now.At-a.began)
	}
}

// fast reports whether an answer that took so long came within the attempt's own timeout, or its time wasn't the server's.
func (m *model) fast(a *modelAttempt, took time.Duration) bool {
	limit := m.slowAfter()
	if limit == 0 {
		return true
	}
	return took <= limit || a.unmeasured || a.committed != "" && !a.heard
}

// accepts reports whether an attempt has ended well.
func accepts(r *Result) bool { return r.Err == nil && !r.Again }

// followed reports whether a later attempt than n runs in its place.
func (m *model) followed(n int) bool {
	if compiled.Of(m.set.Policy).Hedge != nil {
		return false
	}
	return slices.ContainsFunc(m.attempts[n:], func(a modelAttempt) bool { return a.running && a.cancelled == notCancelled })
}

// ended records the effects of the end of an attempt.
func (m *model) ended(n int, a *modelAttempt, r *Result, step Step, followed bool) {
	if r.Err != nil && !r.ContextEnded && m.answer == 0 && a.cancelled != outrun {
		m.said, m.saidBy, m.saidUnsent = r.Err, n, r.Origin == decision.Unsent
	}
	lost := a.cancelled == outrun || m.answer != 0 || m.stopped != "" && a.cancelled == replaced && r.ContextEnded
	a.failsOK = r.Again && !r.Well && r.Err == nil
	switch {
	case lost:
	case accepts(r):
		m.answer, m.last, m.lastErr = n, n, nil
	case m.stopped != "":
		if m.last == 0 || m.lastLocal || !r.ContextEnded {
			m.last, m.lastErr, m.lastLocal = n, r.Err, r.ContextEnded
		}
	case a.cancelled == replaced && r.ContextEnded:
		m.last, m.lastErr = n, errTimedOut
	case step.Decided != n:
		m.failf("the failure of attempt %d leads to no decision: %+v", n, step)
	default:
		m.decided(n, r, step.Decision, followed)
	}
}

// decided records the decision after a failed attempt.
func (m *model) decided(n int, r *Result, d decision.Decision, followed bool) {
	ran := m.now.At - m.attempts[n-1].began
	m.last, m.lastErr = n, r.Err
	if !followed {
		m.may = false
	}
	if r.Resumes {
		if r.Progress || ran >= LongRun && r.Seen() {
			m.since = 1
		}
		if d.Retry {
			m.committed, m.shown = 0, 0
		}
	}
	if d.Reason == policy.ReasonNonRetryable || d.Reason == policy.ReasonCommitted || m.committed == n {
		m.answer = n
	}
	switch push := d.Pushback; {
	case push.Source == "":
	case decision.Forbids(m.set.Policy, push):
		m.forbidden = true
	default:
		m.floor = max(m.floor, m.now.At+push.Delay)
		m.word = max(m.word, m.now.At+push.After(1))
	}
}

// result returns a random result of an attempt.
func (m *model) result(a *modelAttempt) (Result, string) {
	gone := a.cancelled != notCancelled || m.stopped != ""
	if gone && (a.dropped || !m.dice.one(3)) {
		code := codes.Canceled
		if m.stopped == policy.ReasonDeadlineExceeded {
			code = codes.DeadlineExceeded
		}
		unsent := !a.heard && a.committed == "" && m.dice.one(4)
		return resultOf(code, func(r *Result) {
			r.ContextEnded = true
			if unsent {
				r.Origin = decision.Unsent
			}
		}), "cut"
	}
	unavailable := func(change func(*Result)) Result { return resultOf(codes.Unavailable, change) }
	switch m.dice.roll(24) {
	case 0:
		return Result{}, "OK"
	case 1:
		if a.heard || a.committed != "" {
			return Result{}, "OK"
		}
		return unavailable(func(r *Result) { r.Origin = decision.Unsent }), "UNAV unsent"
	case 2, 3:
		return resultOf(codes.Aborted, nil), "ABORTED"
	case 4:
		return resultOf(codes.NotFound, nil), "NOT_FOUND"
	case 5:
		return Result{Outcome: decision.Outcome{Again: true}}, "OK again"
	case 6, 7:
		ms := strconv.Itoa(m.dice.roll(256))
		return unavailable(func(r *Result) { r.Trailer = metadata.Pairs(decision.PushbackTrailer, ms) }), "UNAV push=" + ms
	case 8, 9:
		return unavailable(func(r *Result) { r.Trailer = metadata.Pairs(decision.PushbackTrailer, "-1") }), "UNAV push=-1"
	case 10:
		return unavailable(func(r *Result) { r.Trailer = metadata.Pairs(decision.RetryAfter, "1") }), "UNAV retry-after=1"
	case 11:
		return unavailable(func(r *Result) { r.Final, r.LocalError = true, true }), "UNAV final local error"
	case 13:
		return resultOf(codes.NotFound, func(r *Result) { r.Again = true }), "NOT_FOUND again"
	case 14:
		return Result{Outcome: decision.Outcome{Again: true, Well: true}}, "OK notyet"
	case 15, 16, 17:
		if a.committed != "" && a.cancelled == notCancelled {
			progress := m.dice.one(2)
			return unavailable(func(r *Result) { r.Resumes, r.Progress = true, progress }), fmt.Sprintf("UNAV resumes progress=%v", progress)
		}
		fallthrough
	default:
		return unavailable(nil), "UNAV"
	}
}

func resultOf(code codes.Code, change func(*Result)) Result {
	var r Result
	r.Status = status.New(code, "")
	r.Err = r.Status.Err()
	if change != nil {
		change(&r)
	}
	return r
}

// stop tells the call that its caller is gone.
func (m *model) stop(reason policy.Reason) {
	if m.stopped == "" && !m.over && m.answer == 0 {
		m.stopped = reason
		m.committed = 0
		if reason != policy.ReasonClosed || m.running > 0 {
			m.last, m.lastErr = 0, nil
		}
	}
	m.event(notCancelled, func() Step { return m.call.Stop(reason, m.now) }, nil, "stop %s", reason)
}

// commit lets the application see part of attempt n, which may be any number.
func (m *model) commit(n int, why decision.Commit) {
	running := n >= 1 && n <= len(m.attempts) && m.attempts[n-1].running
	want := running && m.attempts[n-1].cancelled == notCancelled
	if running {
		a := &m.attempts[n-1]
		switch {
		case a.cancelled != notCancelled:
			a.dropped = true
		case m.stopped != "" && m.answer == 0: // what has ended before is not the answer
			m.last, m.lastErr = 0, nil
			fallthrough
		case m.committed == 0 && m.stopped == "" && m.answer == 0:
			m.committed, a.committed = n, why
		}
	}
	got := false
	_, ok := m.event(outrun, func() Step {
		step, yes := m.call.Commit(n, why, m.now)
		got = yes
		return step
	}, nil, "commit %d %s", n, why)
	switch {
	case !ok:
	case got != want, got && m.shown != 0 && m.shown != n:
		m.failf("9: commit %d: %v; want %v; %d is shown", n, got, want, m.shown)
	case got:
		m.shown = n
	}
}

// event reports an event to the call, lets the model learn from the step, and checks it. by is the reason for cancellations. If
// a callback panics, the call is aborted, and ok is false.
func (m *model) event(by cancelled, report func() Step, learn func(Step), format string, args ...any) (step Step, ok bool) {
	m.look()
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, errFuse) {
				panic(v)
			}
			m.note("%s: a callback panics", fmt.Sprintf(format, args...))
			m.abort()
		}
	}()
	step = report()
	step.Cancel = slices.Clone(step.Cancel)
	if m.log != nil {
		p := play{world: &m.world}
		p.call = *m.call
		m.note("%s %s", fmt.Sprintf(format, args...), p.print(step, ""))
	}
	if learn != nil {
		learn(step)
	}
	m.check(step, by)
	return step, true
}

// abort settles a call whose callback has panicked.
func (m *model) abort() {
	if m.dice.one(2) { // another one panics meanwhile
		m.fuse = 1 + m.dice.roll(4)
	}
	func() {
		defer func() { _ = recover() }()
		m.call.Abort(m.now)
	}()
	m.fuse = 0
	if !m.call.Over() {
		m.failf("10: the call goes on after Abort")
	}
	m.over = true
	m.wake, m.watch = Never, false
	for i := range m.attempts {
		m.attempts[i].running = false
	}
	m.running = 0
	if left := m.left(); left != nil {
		m.failf("5: not given back after Abort: %v", left)
	}
}

func (m *model) note(format string, args ...any) {
	if m.log != nil {
		fmt.Fprintf(m.log, "%v %s\n", m.now.At-m.began, fmt.Sprintf(format, args...))
	}
}

func (m *model) Running() int { return m.call.Running() }

// describe returns the settings in the form of a trace of call_test.go.
func describe(s Settings) string {
	var b strings.Builder
	p := s.Policy
	fmt.Fprintf(&b, "policy %+v %+v", compiled.Of(p).Extra, compiled.Of(p).Hedge)
	fmt.Fprintf(&b, " deadline=%v connect=%v max=%d alone=%v breaker=%v", s.Deadline, s.Outage.Longest, s.MaxAttempts, s.InSequence, s.Breaker != nil)
	return b.String()
}
