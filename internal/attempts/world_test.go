// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

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

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/policy"
)

// world is everything that a call uses, except the engine. told has the calls of the others, in order:
//
//	F                   the budget, of a failure             ( )  a wait slot is taken, left
//	E+ E-               the call has succeeded, failed       (!   none is free
//	Wf Ws               a permit after a failure, beside or  d:Code  the breaker, of an attempt's end
//	                    in place of a slow attempt
//	w                   no permit
//	+ - R               its attempt has helped, failed, was not sent
//	<  >  a:20          an attempt is counted by admission, not any more, or was answered after 20 ms
//	>a >d >f            not any more: it was answered at some time, its deadline has passed, the server is full
type world struct {
	told          []string
	grants, slots int
	refuse        bool          // the breaker
	off           policy.Reason // why nothing may be sent; "": it may
	breaker       bool
	panics        []string // the callback that panics at its next call, once; also Allow, Quantile, Record
	quantile      time.Duration
	permits       int64
	later         int            // so often, the budget says Later first
	open          map[int64]bool // permits whose attempt has not ended
	calls         int            // of the breaker, that are not done
	passed        int            // attempts that the breaker let pass
	entered       int            // slots
	finished      int
	recorded      []time.Duration
	shows         evidence.Evidence // the method's last answers
	queued        bool              // admission refuses
	counted       int               // attempts that admission counts
	origin        time.Duration     // of the clock
}

func (w *world) tell(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.told = append(w.told, what)
	w.called(what)
}

// called panics if the callback is due to.
func (w *world) called(what string) {
	if i := slices.Index(w.panics, what); i >= 0 {
		w.panics = slices.Delete(w.panics, i, i+1)
		panic("a callback panics at " + what)
	}
}

func (w *world) Observe(_ time.Time, e budget.Event) {
	if e == budget.EventAnswered || e == budget.EventUnconnected { // other lines say so
		return
	}
	if e != budget.EventAttemptFailed {
		w.finished++
	}
	w.tell("%s", map[budget.Event]string{budget.EventAttemptFailed: "F", budget.EventCallSucceeded: "E+", budget.EventCallFailed: "E-"}[e])
}

func (w *world) Allow(_ time.Time, c budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	switch {
	case w.later > 0:
		w.later--
		w.tell("l")
		return budget.Later, nil
	case c == budget.CauseReconnected:
	case w.grants == 0:
		w.tell("w")
		return budget.No, nil
	default:
		w.grants--
	}
	w.permits++
	p := w.permits
	w.open[p] = true
	w.tell("W%c", " fsowr"[c])
	return budget.Yes, func(_ time.Time, how budget.End) {
		if !w.open[p] {
			w.tell("TWICE")
		}
		delete(w.open, p)
		w.tell("%c", " R-+"[how])
	}
}

func (w *world) TakeSlot(Wait) bool {
	if w.entered == w.slots {
		w.tell("(!")
		return false
	}
	w.entered++
	w.tell("(")
	return true
}

func (w *world) MoveSlot(_, _ Wait) {}

func (w *world) ReleaseSlot(Wait) {
	w.entered--
	w.tell(")")
}

// circuit is the world as a breaker.
type circuit struct{ *world }

var errOpen = errors.New("circuit is open")

func (c circuit) Open(n int) error {
	c.asked(n)
	if c.refuse {
		return errOpen
	}
	return nil
}

// asked checks that the breaker is asked for the attempt that is sent next, or before one that has not been sent.
func (c circuit) asked(n int) {
	if n != c.passed+1 {
		c.tell("ASKED FOR %d", n)
	}
}

func (c circuit) Allow(n int) (func(error), error) {
	c.called("Allow")
	c.asked(n)
	if c.refuse {
		return nil, errOpen
	}
	c.calls++
	c.passed++
	return func(err error) {
		c.calls--
		c.tell("d:%v", status.Code(err))
	}, nil
}

// known is the world as the method.
type known struct{ *world }

func (k known) Quantile() time.Duration {
	k.called("Quantile")
	return k.quantile
}

func (k known) Evidence() evidence.Evidence { return k.shows }

func (k known) AnsweredSince(time.Duration) bool { return false }

func (k known) Failed(time.Duration) {}

func (k known) Recovered() {}

func (k known) FailsFor(time.Duration) time.Duration { return 0 }

func (k known) Outlasted(_, least time.Duration) { k.record(least) }

func (k known) Answered(_ time.Duration, a evidence.Answer) {
	if a.Accepted {
		k.record(a.Took)
	}
}

// admits is the world as admission.
type admits struct{ *world }

// Open assumes that answers take 1500 ms.
func (a admits) Open(_, left time.Duration) bool { return !a.queued || left >= at(1500) }

func (a admits) Allow(attempt int, now, left time.Duration, enforced bool) (running int, would bool) {
	would = attempt == 1 && !a.Open(now, left)
	if would && enforced {
		return 0, false
	}
	a.counted++
	a.tell("<")
	return a.counted, would
}

// endMarks tell how an attempt ended for admission, if it was not answered in a known time.
var endMarks = [...]string{admitting.Other: ">", admitting.Untimed: ">a", admitting.Missed: ">d", admitting.Full: ">f"}

func (a admits) Done(_ time.Duration, e admitting.End) {
	a.counted--
	if e.How == admitting.Answered {
		a.tell("a:%d", e.Took.Milliseconds())
	} else {
		a.tell("%s", endMarks[e.How])
	}
}

func (admits) State() admitting.State { return admitting.State{} }

func (w *world) record(took time.Duration) {
	w.recorded = append(w.recorded, took)
	w.called("Record")
}

func at(ms int) time.Duration              { return time.Duration(ms) * time.Millisecond }
func (w *world) now(ms int, down bool) Now { return nowAt(w.origin+at(ms), 0.5, down) }
func nowAt(t time.Duration, r float64, down bool) Now {
	return Now{At: t, Wall: time.Unix(0, int64(t)), Chance: r, Down: down}
}

// play runs a trace against the engine. Its parts are "time event → step", where the step is compared with the engine's.
type play struct {
	*world

	call Call
	set  Settings
	down bool

	connecting bool
	outage     int // when it began; "set down 4000": 4 s ago
	steps      []string
}

func (p *play) run(trace string) {
	for part := range strings.SplitSeq(trace, ";") {
		head, _, _ := strings.Cut(part, "→")
		words := strings.Fields(head)
		ms, err := strconv.Atoi(words[0])
		if err != nil {
			panic(part)
		}
		event := strings.Join(words, " ")
		p.steps = append(p.steps, strings.TrimSpace(event+" "+p.event(ms, words[1], words[2:])))
	}
}

func (p *play) event(ms int, event string, args []string) (what string) {
	if len(args) > 0 && event == "set" || event == "wake" && len(args) > 0 {
		switch args[0] {
		case "down":
			p.down, p.outage = true, ms
			if len(args) > 1 {
				p.outage -= number(args[1])
			}
		case "up":
			p.down, p.connecting = false, false
		case "connecting":
			p.connecting = true
		case "refuse":
			p.refuse = true
		case "off":
			p.off = policy.ReasonClosed
		case "queue":
			p.queued = true
		case "answers":
			p.queued = false
		case "mode_off":
			p.off = policy.ReasonModeOff
		}
		if event == "set" {
			return ""
		}
	}
	now := p.now(ms, p.down)
	now.Connecting, now.Off = p.connecting, p.off
	if p.down {
		now.Outage = at(ms - p.outage)
	}
	prefix := ""
	defer func() {
		if v := recover(); v != nil {
			what = "→ panic, abort: " + strings.TrimPrefix(p.abort(now), "→ ")
		}
	}()
	var step Step
	switch event {
	case "start":
		step = p.call.Start(&p.set, now)
	case "end":
		step = p.call.Ended(number(args[0]), result(args[1:]), now)
	case "wake":
		step = p.call.Wake(now)
	case "heard":
		p.call.Heard(number(args[0]), now)
		return ""
	case "await":
		step = p.call.Await(now)
	case "stop":
		step = p.call.Stop(policy.Reason(args[0]), now)
	case "abort": // a callback has panicked
		return p.abort(now)
	case "commit":
		var ok bool
		step, ok = p.call.Commit(number(args[0]), decision.Commit(args[1]), now)
		prefix = strconv.FormatBool(ok)
	default:
		panic(event)
	}
	return p.print(step, prefix)
}

// abort ends the call after a panic. Callbacks may panic again.
func (p *play) abort(now Now) string {
	func() {
		defer func() { _ = recover() }()
		p.call.Abort(now)
	}()
	return p.print(Step{Wake: Never, Over: true}, "")
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

var named = map[string]codes.Code{"UNAV": codes.Unavailable, "ABORTED": codes.Aborted, "NOT_FOUND": codes.NotFound, "EXHAUSTED": codes.ResourceExhausted, "DEADLINE": codes.DeadlineExceeded, "cut": codes.Canceled}

func result(words []string) Result {
	var r Result
	if code := named[words[0]]; code != codes.OK {
		r.Status = status.New(code, "")
		r.Err = r.Status.Err()
	}
	r.ContextEnded = words[0] == "cut"
	for _, w := range words[1:] {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "final":
			r.Final = true
		case "unsent":
			r.Origin = decision.Unsent
		case "unseen":
			r.Origin = decision.Unseen
		case "again":
			r.Again = true
		case "notyet":
			r.Again, r.Well = true, true
		case "resumes":
			r.Resumes = true
		case "progress":
			r.Progress = true
		case "push":
			r.Trailer = metadata.Pairs(decision.PushbackTrailer, value)
		default:
			panic(w)
		}
	}
	return r
}

// print returns a step as text, in the order in which the driver carries it out.
func (p *play) print(s Step, first string) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if first != "" {
		add("%s", first)
	}
	if s.Decided != 0 {
		announced := ""
		if s.Decision.Announced() {
			announced = " announced"
		}
		add("(%s%s)", s.Decision.Reason, announced)
	}
	if len(s.Cancel) > 0 {
		add("cancel %s", strings.Trim(fmt.Sprint(s.Cancel), "[]"))
	}
	if s.Send != 0 {
		add("send %d", s.Send)
	}
	if s.Wake != Never {
		watch := ""
		if s.Watch {
			watch = " or connected"
		}
		add("wake %d%s", (s.Wake - p.origin).Milliseconds(), watch)
	}
	if s.Over {
		e := p.call.End()
		reason := string(e.Reason)
		if errors.Is(e.Err, ErrPanicked) {
			reason = "panicked"
		}
		if e.Commit != "" {
			reason += " (" + string(e.Commit) + ")"
		}
		add("over %s", reason)
		add("= %d", e.ResultOf)
		if e.Last != nil {
			add("last %v", status.Code(e.Last))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "→ " + strings.Join(parts, ", ")
}

// quick is what a method shows that is answered fast.
var quick = evidence.Evidence{Known: evidence.Remembered}

// newPlay returns a world with options such as "grants=1 breaker". Its clock begins at origin.
func newPlay(p *policy.Policy, options string, origin time.Duration) *play {
	w := &world{
		origin: origin, grants: 100, slots: 100, shows: quick, open: map[int64]bool{},
	}
	pl := &play{world: w, set: Settings{
		Policy: p, Deadline: Never, Safe: true, Budget: w, Slots: w, Method: known{w}, Enforced: true,
	}}
	for option := range strings.FieldsSeq(options) {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "grants":
			w.grants = number(value)
		case "slots":
			w.slots = number(value)
		case "unsafe":
			pl.set.Safe = false
		case "inretry":
			pl.set.InRetry = true
		case "breaker":
			w.breaker = true
			pl.set.Breaker = circuit{w}
		case "refuse":
			w.refuse = true
		case "admission":
			pl.set.Admission = admits{w}
		case "queue":
			w.queued = true
		case "unknown":
			pl.set.Method = nil
		case "panics":
			w.panics = strings.Split(value, ",")
		case "quantile":
			w.quantile = at(number(value))
		case "connect":
			pl.set.Outage.Longest = at(number(value))
		case "failfast":
			pl.set.Outage.FailFast = true
		case "deadline":
			pl.set.Deadline = origin + at(number(value))
		case "alone":
			pl.set.InSequence = true
		case "stream":
			pl.set.Kind = Stream
		case "upload":
			pl.set.Kind = Upload
		case "observe":
			pl.set.AnnounceOnly = true
		case "later":
			pl.later = number(value)
		case "max":
			pl.set.MaxAttempts = number(value)
		default:
			panic(option)
		}
	}
	return pl
}

// left returns what the call has not released.
func (w *world) left() []string {
	var list []string
	if len(w.open) > 0 {
		list = append(list, fmt.Sprint("permits: ", len(w.open)))
	}
	if w.entered != 0 {
		list = append(list, fmt.Sprint("slots: ", w.entered))
	}
	if w.calls != 0 {
		list = append(list, fmt.Sprint("calls of the breaker: ", w.calls))
	}
	if w.counted != 0 {
		list = append(list, fmt.Sprint("attempts that admission counts: ", w.counted))
	}
	if w.finished > 1 {
		list = append(list, fmt.Sprint("the end was told ", w.finished, " times"))
	}
	if slices.Contains(w.told, "TWICE") {
		list = append(list, "a permit has ended twice")
	}
	return list
}
