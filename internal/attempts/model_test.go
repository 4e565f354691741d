// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The model has one goroutine: the race detector would say nothing, ten times as slowly.

package attempts

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// model is a call with random events. It knows only the call's steps. After each event it checks what must always hold; the
// numbers are those of the list in check.
type model struct {
	*modelWorld

	call    *Call // whose memory may have been another call's
	set     Settings
	log     *strings.Builder // nil: silent
	now     Now
	flipped bool // the channel went up or down since the last wake

	attempts   []modelAttempt // by number, less one
	running    int
	since      int           // attempts since the start or the last progress
	committed  int           // the attempt that the call is committed to; 0: none
	shown      int           // the attempt of which the application sees something; 0: none
	answer     int           // the attempt that has ended the call by an answer or a fatal failure
	stopped    policy.Reason // "": the caller is there
	forbidden  bool          // the server has forbidden further attempts
	floor      time.Duration // nothing is sent before, by the server's pushback
	announced  bool          // an attempt that is not sent
	refused    policy.Reason // why no attempt follows the newest, which is slow; "": no decision
	unsent     bool          // the attempt whose end is the event was not sent
	reached    bool          // a server has seen an attempt
	asks       bool          // the call wants to wake because an attempt is slow then
	word       time.Duration // the latest time to which the pushback, with jitter, delays an attempt
	may        bool          // a decision allows an attempt that was not sent yet
	due        time.Duration // by that decision
	wake       time.Duration // of the last step
	inTime     bool          // the call is woken when it wants to
	watch      bool
	over       bool
	began      time.Duration
	idleSince  time.Duration
	waited     time.Duration
	last       int // the attempt whose end is the answer so far; 0: none
	lastErr    error
	lastLocal  bool  // it was what became of a context
	said       error // the last error of a server, but of attempts that had lost, before the call was answered
	saidBy     int
	saidUnsent bool // that attempt never left this client
}

type modelAttempt struct {
	failsOK   bool // a classifier has found a failure in its reply
	began     time.Duration
	heardIn   time.Duration // after which time, less the pauses
	slowAt    time.Duration // when the call asks what follows it; Never: it does not
	slow      bool          // it has asked
	running   bool
	heard     bool // it has brought a message
	cancelled cancelled

	unconnected bool // when it was slow, there was no connection
	unmeasured  bool // it has waited for one

	dropped   bool // a message came too late: the driver drops it, and reports a cancelled attempt
	committed decision.Commit
}

func (m *model) failf(format string, args ...any) {
	m.violate(fmt.Sprintf(format, args...))
}

// runningNumbers returns the numbers of the running attempts.
func (m *model) runningNumbers() []int {
	var list []int
	for i := range m.attempts {
		if m.attempts[i].running {
			list = append(list, i+1)
		}
	}
	return list
}

// unheard returns how many running attempts have received nothing.
func (m *model) unheard() int {
	n := 0
	for i := range m.attempts {
		if a := &m.attempts[i]; a.running && !a.heard {
			n++
		}
	}
	return n
}

// check checks a step. by is why it cancels what it cancels; ended is the attempt whose end was the event, or 0.
//
//  1. Numbers are 1, 2, 3…; one event sends at most one attempt; events after the end give an empty step.
//  2. Nothing is sent after a commitment, an answer, a stop or the end.
//  3. A call makes at most the allowed attempts since the start or the last progress.
//  4. Attempts run in parallel only if the policy and the call allow it.
//  5. Permits, the breaker's permission, and the wait slot are released, once. The budget hears the end of a call that a server has seen.
//  6. A call has one wait slot at most, and none when it does not wait.
//  7. Nothing is sent before the server's pushback, nor after a stop by the server, nor before the decided delay.
//  8. No extra attempt is sent while the channel is down and waited for, nor without the breaker's permission.
//  9. One attempt is committed at a time, a commitment leaves nothing pending, and the call ends like the attempt that was seen.
//  10. A call ends once, when nothing runs, with the first answer, or the end of an attempt.
//  11. An attempt is cancelled once at most, while it runs.
//  12. A wake before its time changes nothing.
//  13. A call without running attempts wakes up or is over.
//  14. The same events give the same steps.
//  15. A call in OBSERVE has one attempt, no wait slot, and one decision to send another.
//  16. An attempt's clock stands still while no call of the application waits, and a step says whether it wakes for that.
//  17. While all of the last responses are long, no attempt follows one that was sent; without proof that they are fast, none
//     follows a slow one.
//  18. An attempt isn't slow while the channel has no connection, and its time begins again when it has one.
func (m *model) check(step Step, by cancelled) {
	wasOver := m.over
	if wasOver && (len(step.Cancel) > 0 || step.Send != 0 || step.Wake != Never || step.Over || step.Decided != 0) {
		m.failf("1: %+v after the end", step)
	}
	for _, n := range step.Cancel {
		if n < 1 || n > len(m.attempts) || !m.attempts[n-1].running || m.attempts[n-1].cancelled != notCancelled {
			m.failf("11: attempt %d is cancelled, and does not run or was cancelled before", n)
			return
		}
		m.attempts[n-1].cancelled = by
	}
	if step.Decided != 0 {
		m.checkDecision(step)
	}
	if step.Send != 0 {
		m.checkSend(step)
	}
	if m.Running() != m.running {
		m.failf("%d attempts run, says Running; want %d", m.Running(), m.running)
	}
	if m.entered > 0 && (m.set.AnnounceOnly || step.Send != 0 || m.committed != 0 || m.answer != 0 || m.stopped != "" || step.Over) {
		m.failf("6: a wait slot is held by a call that does not wait")
	}
	if free := len(m.open) - m.running; free > 1 || free > 0 && (m.committed != 0 || m.answer != 0 || m.stopped != "") {
		m.failf("5: %d permits for %d attempts that run", len(m.open), m.running)
	}
	if counted := m.unheard(); m.counted != counted && (m.set.Admission != nil || m.counted != 0) {
		m.failf("5: admission counts %d attempts; want the %d that run and have brought nothing", m.counted, counted)
	}
	if m.fails > len(m.attempts) {
		m.failf("5: %d failures of %d attempts", m.fails, len(m.attempts))
	}
	if len(m.recorded) > len(m.attempts) {
		m.failf("5: %d latencies of %d attempts", len(m.recorded), len(m.attempts))
	}
	switch {
	case step.Over:
		m.checkEnd()
	case wasOver:
	case m.running == 0 && step.Wake == Never:
		m.failf("13: nothing runs, and nothing wakes the call")
	}
	if step.Wake != Never && step.Wake >= m.set.Deadline && m.now.At < m.set.Deadline {
		m.failf("13: the call wants to wake at %v, after its deadline at %v", step.Wake, m.set.Deadline)
	}
	if step.Wake != Never && m.running > 0 && !m.set.Policy.Watched() {
		m.failf("13: a call whose attempts can't be slow wakes at %v while one runs: a unary call has no lock then", step.Wake)
	}
	if step.Watch && !m.flipped && (!m.now.Down || step.Wake > min(m.now.At+m.set.Outage.Longest, max(m.latest(), m.now.At))) {
		m.failf("8: the call waits for a channel until %v; down: %v", step.Wake, m.now.Down)
	}
	if n := len(m.attempts); step.Wake == Never && m.isOpen() && n > 0 {
		if a := &m.attempts[n-1]; a.running && a.cancelled == notCancelled && !a.slow && a.slowAt != Never {
			m.failf("13: nobody asks at %v what follows attempt %d", a.slowAt, n)
		}
	}
	m.checkSlow(step)
	m.wake, m.watch, m.asks = step.Wake, step.Watch, step.Slow
}

// checkSlow checks the reason for which a step wakes the call.
func (m *model) checkSlow(step Step) {
	switch n := len(m.attempts); {
	case step.Slow && (step.Wake != m.attempts[n-1].slowAt || !m.attempts[n-1].running || m.running == 0):
		m.failf("16: at %v attempt %d is slow; want %v", step.Wake, n, m.attempts[n-1].slowAt)
	case !step.Slow && step.Wake != Never && !m.may:
		m.failf("16: the call wakes at %v for an attempt that is slow then, and does not say so", step.Wake)
	}
}

// isOpen reports whether attempts may be sent.
func (m *model) isOpen() bool {
	return !m.over && m.answer == 0 && m.stopped == "" && m.committed == 0
}

// checkDecision checks when a step wakes the call for a decision.
func (m *model) checkDecision(step Step) {
	d := step.Decision
	if d.Announced() {
		if !m.set.AnnounceOnly || m.announced {
			m.failf("15: %+v; one before: %v", d, m.announced)
		}
		m.announced = true
		d.Reason = policy.ReasonModeOff
	}
	beside := m.set.Policy.Parallel() && !m.set.InSequence
	slow := m.shows.VerySlow == 10 && !m.unsent || step.TimedOut && (m.shows.Slow > 2 || beside && m.shows.Known < 5)
	if follows := d.Retry || step.Decision.Announced(); follows && slow && m.set.Method != nil {
		m.failf("17: an attempt follows attempt %d while answers are slow", step.Decided)
	}
	if step.TimedOut && m.unconnected() {
		m.failf("18: attempt %d is slow while there is no connection", step.Decided)
	}
	if step.TimedOut {
		a := &m.attempts[step.Decided-1]
		if step.Decided != len(m.attempts) || a.slow || m.now.At < a.slowAt {
			m.failf("attempt %d of %d is slow at %v; want %v, once", step.Decided, len(m.attempts), m.now.At, a.slowAt)
		}
		a.slow = true
		if !d.Retry {
			m.refused = d.Reason
		}
	}
	if !d.Retry {
		if step.Over && (m.call.End().Reason != d.Reason || m.call.End().Commit != d.Commit) {
			m.failf("10: the end is %+v; decided was %+v", m.call.End(), d)
		}
		return
	}
	m.may, m.due = true, later(m.now.At, d.Delay)
	given := step.Wake == m.attempts[len(m.attempts)-1].slowAt // the attempt was given up at once
	latest := max(m.due, m.word)
	if m.now.Down && m.set.Outage.Longest > 0 { // others run, so that the channel is looked at now and then
		latest = max(latest, later(m.now.At, decision.BackoffOf(m.set.Policy).Initial))
	}
	if d.ForAnswer { // the first question comes after a backoff or at the end of the wait, and never at once
		latest = later(m.now.At, m.set.Outage.Longest)
		m.due = min(m.due, latest)
	}
	if waits := step.Send == 0 && step.Wake != Never && !step.Watch && !given; waits && step.Wake > latest {
		m.failf("7: the attempt that is due at %v waits until %v", m.due, step.Wake)
	}
}

func (m *model) checkSend(step Step) {
	a := modelAttempt{began: m.now.At, running: true, slowAt: Never}
	m.attempts = append(m.attempts, a)
	if m.idleSince != Never {
		m.waited += m.now.At - m.idleSince
	}
	m.running++
	m.since++
	p := m.set.Policy
	switch n := len(m.attempts); {
	case step.Send != n:
		m.failf("1: attempt %d is sent; want %d", step.Send, n)
	case m.over, m.stopped != "", m.answer != 0, m.committed != 0:
		m.failf("2: attempt %d is sent: over %v, stopped %q, answer %d, committed %d", n, m.over, m.stopped, m.answer, m.committed)
	case m.since > m.limit():
		m.failf("3: attempt %d of %d", m.since, m.limit())
	case m.running > 1 && (m.set.InSequence || !p.Parallel()):
		m.failf("4: %d attempts run", m.running)
	case n == 1:
	case m.off != "", m.set.AnnounceOnly:
		m.failf("2: attempt %d is sent although nothing may be sent any more", n)
	case m.inTime && m.now.At > m.latest():
		m.failf("7: attempt %d is sent at %v; want %v at the latest", n, m.now.At, m.latest())
	case !m.may:
		m.failf("7: attempt %d is sent, and nobody has decided that", n)
	case m.now.At < m.due, m.now.At < m.floor, m.forbidden:
		m.failf("7: attempt %d is sent at %v; due at %v, by the server's word at %v; forbidden: %v", n, m.now.At, m.due, m.floor, m.forbidden)
	case m.now.Down && m.set.Outage.Longest > 0:
		m.failf("8: attempt %d is sent while the channel is down", n)
	}
	if m.set.Breaker != nil && m.allowed != len(m.attempts) {
		m.failf("8: %d attempts, of which the breaker has allowed %d", len(m.attempts), m.allowed)
	}
	m.may, m.refused, m.idleSince = false, "", Never
	m.arm(&m.attempts[len(m.attempts)-1])
}

// arm computes when the call decides what follows an attempt, if it does not end before.
func (m *model) arm(a *modelAttempt) {
	p := m.set.Policy
	switch {
	case m.since >= m.limit(), m.forbidden, m.set.InSequence && compiled.Of(p).Hedge != nil:
		return
	case compiled.Of(p).Hedge == nil && p.PerAttemptTimeout() == 0:
		return
	}
	if slowAt := a.began + m.slowAfter(); slowAt < m.set.Deadline {
		a.slowAt = slowAt
	}
}

// slowAfter returns the time after which an attempt is slow.
func (m *model) slowAfter() time.Duration {
	p := m.set.Policy
	switch {
	case compiled.Of(p).Hedge == nil:
		return p.PerAttemptTimeout()
	case m.set.Method != nil && compiled.Of(p).Hedge.Quantile > 0 && m.quantile > 0:
		return m.quantile
	default:
		return compiled.Of(p).Hedge.HedgingDelay
	}
}

// unconnected reports whether an attempt that runs may wait for a connection.
func (m *model) unconnected() bool { return m.now.Connecting || m.now.Down }

// postpone moves the time at which an attempt is slow that may have waited for a connection until now.
func (m *model) postpone() {
	n := len(m.attempts)
	if !m.asks || n == 0 || m.now.At < m.attempts[n-1].slowAt {
		return
	}
	a := &m.attempts[n-1]
	if !m.unconnected() && !a.unconnected {
		return
	}
	a.unmeasured = true
	after := m.slowAfter()
	if a.unconnected = m.unconnected(); a.unconnected {
		after = max(after, connectPoll)
	}
	if a.slowAt = m.now.At + after; a.slowAt >= m.set.Deadline {
		a.slowAt = Never
	}
}

// latest returns the last time at which an attempt can be sent before the deadline.
func (m *model) latest() time.Duration {
	if m.set.Deadline == Never {
		return Never
	}
	return m.set.Deadline - decision.MinAttemptTime
}

// limit returns how many attempts a call may make.
func (m *model) limit() int {
	limit := m.set.Policy.MaxAttempts()
	if m.set.MaxAttempts > 0 {
		limit = min(limit, m.set.MaxAttempts)
	}
	return limit
}

// checkEnd checks how the call has ended.
func (m *model) checkEnd() {
	if m.over || m.running > 0 {
		m.failf("10: over, while %d attempts run; before: %v", m.running, m.over)
	}
	m.over = true
	if left := m.left(); left != nil {
		m.failf("5: not given back: %v", left)
	}
	e := m.call.End()
	if len(m.attempts) == 0 {
		byBreaker := e.Reason == policy.ReasonBreakerOpen && errors.Is(e.Err, errOpen)
		overloaded := e.Reason == policy.ReasonOverloaded && status.Code(e.Err) == codes.ResourceExhausted && m.set.Admission != nil && m.set.Enforced
		if !byBreaker && !overloaded || e.ResultOf != 0 {
			m.failf("10: refused: %+v", e)
		}
		return
	}
	if m.idleSince != Never {
		m.waited += m.now.At - m.idleSince
	}
	if m.stopped == policy.ReasonDeadlineExceeded && m.answer == 0 && !m.reached && m.saidUnsent && (m.last == 0 || m.lastLocal) {
		m.stopped, m.refused = policy.ReasonNotConnected, ""
		m.last, m.lastErr = m.saidBy, m.said
	}
	switch {
	case e.Attempts != len(m.attempts), e.Waited != m.waited:
		m.failf("10: %+v; want %d attempts, waited %v", e, len(m.attempts), m.waited)
	case e.ResultOf != m.last, status.Code(e.Err) != status.Code(m.lastErr):
		m.failf("10: answer %d, %v; want %d, %v", e.ResultOf, e.Err, m.last, m.lastErr)
	}
	if m.shown != 0 && e.ResultOf != m.shown {
		m.failf("9: the answer is %d; the application has seen %d", e.ResultOf, m.shown)
	}
	switch want := m.stopped; {
	case m.answer != 0 || want == "":
	case want == policy.ReasonDeadlineExceeded && m.refused != "":
		want = m.refused
		fallthrough
	default:
		if e.Reason != want && !gaveUp[e.Reason] {
			m.failf("10: the reason is %s; want %s", e.Reason, want)
		}
	}
	switch e.Reason {
	case "", policy.ReasonRetry, policy.ReasonHedge, policy.ReasonFollowed:
		m.failf("10: a call ends with the reason %q", e.Reason)
	case policy.ReasonSucceeded:
		if e.Err != nil || e.ResultOf == 0 {
			m.failf("10: %+v", e)
		}
	}
	failed := e.Err != nil || e.ResultOf == 0
	want := m.said
	if !failed || m.saidBy == e.ResultOf {
		want = nil
	}
	if (e.Last != nil) != (want != nil) || !errors.Is(e.Last, want) {
		m.failf("10: the last that a server said is %v; want %v", e.Last, want)
	}
	failsOK := e.ResultOf > 0 && m.attempts[e.ResultOf-1].failsOK
	if e.FailsOK != failsOK {
		m.failf("10: the answer tells a failure: %v; want %v", e.FailsOK, failsOK)
	}
	end, wantEnd := "", map[bool]string{true: "E-", false: "E+"}[failed || failsOK]
	if i := slices.IndexFunc(m.told, func(s string) bool { return s[0] == 'E' }); i >= 0 {
		end = m.told[i]
	}
	if !m.reached {
		wantEnd = ""
	}
	if end == "Em" { // what is usual for the method decides between the two
		end = "E-"
	}
	if end != wantEnd {
		m.failf("5: the budget hears %q of %+v; want %q", end, e, wantEnd)
	}
}

// gaveUp has the reasons for which a pending attempt is dropped.
var gaveUp = map[policy.Reason]bool{
	policy.ReasonBreakerOpen: true, policy.ReasonNotConnected: true, policy.ReasonTooManyWaiting: true, policy.ReasonDeadlineTooClose: true,
	policy.ReasonClosed: true, policy.ReasonModeOff: true, policy.ReasonOverloaded: true, policy.ReasonFailingEverywhere: true,
	policy.ReasonBudgetExhausted: true, // after Later
}

// playBytes plays the bytes as events of a call. It returns what is wrong, and logs all events if there is a log.
func playBytes(list []*policy.Policy, call *Call, data []byte, log *strings.Builder) error {
	m := newModel(list, call, data)
	m.log = log
	m.play()
	if m.fault != "" {
		return errors.New(m.fault)
	}
	return nil
}

// report returns the events that lead to a failure, with the fewest bytes.
func report(list []*policy.Policy, data []byte) string {
	data = testkit.Shrink(data, func(data []byte) bool {
		return playBytes(list, new(Call), data, nil) != nil
	})
	var log strings.Builder
	err := playBytes(list, new(Call), data, &log)
	return fmt.Sprintf("%v\n%sbytes: %q", err, log.String(), data)
}

// randomBytes returns the bytes of a random call.
func randomBytes(random *rand.Rand, buffer []byte) []byte {
	data := buffer[:random.IntN(len(buffer))]
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

var many = flag.Int("many", 1, "how many `times` as many random calls to make")

func TestModel(t *testing.T) {
	t.Parallel()
	list := modelPolicies()
	random := rand.New(rand.NewPCG(rand.Uint64(), 0)) // a failure prints its bytes
	buffer := make([]byte, 200)
	var call Call
	for range 20_000 * *many {
		data := randomBytes(random, buffer)
		if err := playBytes(list, &call, data, nil); err != nil {
			t.Fatal(report(list, data))
		}
	}
}

// The same events give the same steps (14), also in a reused Call.
func TestModelRepeats(t *testing.T) {
	t.Parallel()
	list := modelPolicies()
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	buffer := make([]byte, 200)
	var call Call
	for range 300 {
		data := randomBytes(random, buffer)
		var first, second strings.Builder
		_ = playBytes(list, new(Call), data, &first)
		_ = playBytes(list, &call, data, &second)
		if first.String() != second.String() {
			t.Fatalf("bytes %q: first\n%sthen\n%s", data, first.String(), second.String())
		}
	}
}

// FuzzEvents runs the model with a fuzzer's bytes.
func FuzzEvents(f *testing.F) {
	list := modelPolicies()
	random := rand.New(rand.NewPCG(1, 0))
	for range 20 {
		f.Add(randomBytes(random, make([]byte, 200)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := playBytes(list, new(Call), data, nil); err != nil {
			t.Fatal(report(list, data))
		}
	})
}
