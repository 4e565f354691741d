// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/hooks/admitting"
)

const (
	ms  = time.Millisecond
	now = 10 * time.Second
)

// enter asks for the first attempt of a call with this time left, by a policy that is enforced.
func (g *gate) enter(now, left time.Duration) (running int) {
	running, _ = g.Allow(1, now, left, true)
	return running
}

func (g *gate) admits(now, left time.Duration) bool { return g.enter(now, left) > 0 }

// leave ends an attempt without a measured response.
func (g *gate) leave(now, left time.Duration, how admitting.How) {
	g.Done(now, admitting.End{How: how, Left: left})
}

// answer ends an attempt with a response.
func (g *gate) answer(now, took, left time.Duration, running int) {
	g.Done(now, admitting.End{How: admitting.Answered, Took: took, Left: left, Running: running})
}

// busy returns an armed gate, at 10 s, of a service with 10 answers per second; the last ones took as long as given, and the
// fastest ever 20 ms.
func busy(took time.Duration) *gate {
	g := &gate{
		last: [recent]time.Duration{took, took}, heard: recent, at: 9900 * ms, fastest: 20 * ms,
		windows: windows{newer: window{answers: 10, busy: time.Second}, began: 9 * time.Second, at: now},
	}
	g.arm(now, admitting.Never)
	g.limit = limit{began: now, calls: 100} // far from the bound
	return g
}

// with adds running attempts.
func (g *gate) with(n int) *gate {
	g.running += n
	return g
}

// unarmed disarms the gate.
func (g *gate) unarmed() *gate {
	g.armed = 0
	return g
}

// inTime records that so many attempts were answered in time.
func (g *gate) inTime(n int) *gate {
	g.windows.older.inTime = n
	return g
}

func TestGate(t *testing.T) {
	t.Parallel()
	// Of 10 answers a second, 9 fit into 0.9 of a second.
	for name, row := range map[string]struct {
		gate   *gate
		now    time.Duration
		left   time.Duration
		admits bool
	}{
		"nothing is known":                 {new(gate).with(1000), 0, time.Second, true},
		"fast answers":                     {busy(20 * ms).with(1000), now, time.Second, true},
		"answers at the bound of slow":     {busy(600 * ms).with(1000), now, time.Second, true},
		"slow answers":                     {busy(601 * ms).with(1000), now, time.Second, false},
		"slow answers, not armed":          {busy(601 * ms).with(1000).unarmed(), now, time.Second, true},
		"slow answers, not full":           {busy(601 * ms).with(8), now, time.Second, true},
		"slow answers, just full":          {busy(601 * ms).with(9), now, time.Second, false},
		"more were answered in time":       {busy(601 * ms).with(19).inTime(20), now, time.Second, true},
		"as many were answered in time":    {busy(601 * ms).with(20).inTime(20), now, time.Second, false},
		"answers at twice the fastest":     {busy(40 * ms).with(1000), now, 60 * ms, true},
		"answers over twice the fastest":   {busy(41 * ms).with(1000), now, 60 * ms, false},
		"a call with more time":            {busy(601 * ms).with(1000), now, 1002 * ms, true},
		"a call with less time":            {busy(300 * ms).with(9), now, 499 * ms, false},
		"a call without a deadline":        {busy(601 * ms).with(1000), now, admitting.Never, true},
		"a call whose deadline has passed": {busy(601 * ms).with(1000), now + 1, 0, true},
		"the answers are recent":           {busy(601 * ms).with(1000), 11900 * ms, time.Second, false},
		"the answers are old":              {busy(601 * ms).with(1000), 11900*ms + 2, time.Second, true},
		"nothing runs":                     {busy(601 * ms), now, time.Second, true},
		"one runs, in little time":         {busy(601 * ms).with(1), now, 100 * ms, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, running := row.gate.State(), 0
			if row.admits {
				want.Running++
				running = want.Running
			} else {
				want.Refused++
			}
			if got, would := row.gate.Allow(1, row.now, row.left, true); got != running || would || row.gate.State() != want {
				t.Errorf("%d run, %+v; want %d, %+v", got, row.gate.State(), running, want)
			}
		})
	}
}

// Missed deadlines arm a gate, and so does a server that reports that it is full. It stays armed while answers are slow.
func TestGate_Arms(t *testing.T) {
	t.Parallel()
	leave := func(n int, how admitting.How) func(*gate) {
		return func(g *gate) {
			for range n {
				g.with(1).leave(now, time.Second, how)
			}
		}
	}
	type step struct {
		events func(*gate)
		at     time.Duration
		armed  bool
	}
	answered := func(took, at time.Duration) func(*gate) {
		return func(g *gate) { g.with(1).answer(at, took, time.Second, 1) }
	}
	const stay = stays * leastWindow
	for name, steps := range map[string][]step{
		"nothing":             {{leave(10, admitting.Other), now, false}},
		"answers":             {{leave(10, admitting.Untimed), now, false}},
		"one deadline":        {{leave(1, admitting.Missed), now, false}},
		"two deadlines":       {{leave(2, admitting.Missed), now, true}},
		"four of 300":         {{leave(300, admitting.Untimed), now, false}, {leave(3, admitting.Missed), now, false}, {leave(1, admitting.Missed), now, true}},
		"full":                {{leave(1, admitting.Full), now, true}},
		"for some windows":    {{leave(2, admitting.Missed), now + stay - 1, true}, {leave(0, 0), now + stay, false}},
		"slow answers extend": {{leave(2, admitting.Missed), now, true}, {answered(601*ms, now+stay/2), now + stay, true}, {answered(600*ms, now+stay), now + stay*3/2, false}},
		"and do not arm":      {{answered(601*ms, now), now, false}},
	} {
		g := busy(601 * ms).unarmed()
		g.windows.newer.answers = 0
		for i, s := range steps {
			if s.events(g); g.armed.holds(s.at) != s.armed {
				t.Errorf("%s, step %d: armed: %v; want %v", name, i+1, !s.armed, s.armed)
			}
		}
	}
}

// When the queue is longer than the deadline, missed deadlines keep the last answers valid.
func TestGate_MissedDeadlinesAreSlowAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		took, left time.Duration // left is that of the call after the missed one, of a second
		admits     bool
	}{
		"after slow answers":         {601 * ms, time.Second, false},
		"after others":               {600 * ms, time.Second, true},
		"after others, in less time": {600 * ms, 999 * ms, true},
	} {
		g := busy(row.took).with(1000)
		g.limit.began = now + 3*time.Second
		g.leave(now+2*time.Second, time.Second, admitting.Missed)
		if got := g.admits(now+3*time.Second, row.left); got != row.admits {
			t.Errorf("%s: admits: %v; want %v", name, got, row.admits)
		}
	}
}

// Missed deadlines of hurried callers do not arm a gate for a caller with much more time.
func TestGate_HurriedCallers(t *testing.T) {
	t.Parallel()
	for missed, want := range map[time.Duration]bool{60 * ms: true, 100 * ms: true, 101 * ms: false} {
		g := busy(7 * time.Second).with(1000).unarmed()
		for range 2 {
			g.leave(now, missed, admitting.Missed)
		}
		if got := g.admits(now, 10*time.Second); got != want {
			t.Errorf("after two missed deadlines of %v, a call with 10 s is admitted: %v; want %v", missed, got, want)
		}
	}
}

func TestGate_WouldRefuse(t *testing.T) {
	t.Parallel()
	g := busy(700 * ms).with(1000)
	if running, would := g.Allow(1, now, time.Second, false); running != 1001 || !would {
		t.Error("a call that no mode enforces a policy for is refused")
	}
	if got, want := g.State(), (admitting.State{Running: 1001, WouldRefuse: 1}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// Latency alone refuses at most three of four calls; a server's report has no such limit.
func TestGate_Limit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		says    bool
		refused uint64
	}{"latency": {false, 75}, "a server": {true, 100}} {
		g := busy(700 * ms).with(1000)
		g.limit = limit{}
		if row.says {
			g.leave(now, time.Second, admitting.Full)
		}
		for range 100 {
			g.enter(now, time.Second)
		}
		if got := g.State().Refused; got != row.refused {
			t.Errorf("%s: %d of 100 calls are refused; want %d", name, got, row.refused)
		}
	}
}

func TestGate_ServiceThatWasAlwaysSlow(t *testing.T) {
	t.Parallel()
	g := busy(700 * ms).with(1000)
	g.fastest = 350 * ms
	if !g.admits(now, time.Second) {
		t.Error("refused, while answers take as long as they always did")
	}
}

func TestGate_OneFastAnswer(t *testing.T) {
	t.Parallel()
	g := busy(700 * ms).with(1000)
	for i, want := range []bool{true, true, false} { // admitted after a fast answer, until the counted ones are slow
		took := 700 * ms
		if i == 0 {
			took = 599 * ms
		}
		g.answer(now, took, time.Second, 1)
		if got := g.admits(now, time.Second); got != want {
			t.Errorf("answer %d: admitted: %v; want %v", i+1, got, want)
		}
	}
}

func TestGate_RecordAnswer(t *testing.T) {
	t.Parallel()
	g := new(gate).with(3)
	for _, took := range []time.Duration{901 * ms, 900 * ms, 950 * ms} {
		g.answer(now, took, time.Second, int(took/ms))
	}
	if w := g.windows.newer; w.answers != 3 || w.inTime != 900 || g.fastest != 900*ms {
		t.Errorf("%+v, the fastest %v; want 3 answers, 900 in time and 900ms", w, g.fastest)
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	var u until
	for _, at := range []time.Duration{-5, -7, -3} { // times may be negative
		u.extend(at)
		if want := max(at, -5); !u.holds(want-1) || u.holds(want) {
			t.Errorf("extended to %d: until %d; want %d", at, u, want)
		}
	}
}

// After 2 s and 20 calls, the limit counts anew.
func TestLimit_Begins(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		calls int
		after time.Duration
		want  int
	}{{20, limitTime, 1}, {20, limitTime - 1, 21}, {19, limitTime, 20}} {
		l := limit{began: now, calls: row.calls}
		if l.allow(now+row.after, false, false); l.calls != row.want {
			t.Errorf("%d calls, and one after %v: %d count; want %d", row.calls, row.after, l.calls, row.want)
		}
	}
}

func TestGate_Open(t *testing.T) {
	t.Parallel()
	if !busy(20*ms).Open(now, 30*ms) {
		t.Error("an extra attempt is refused while answers are as fast as ever")
	}
	if !busy(700*ms).unarmed().Open(now, time.Second) {
		t.Error("an extra attempt is refused while no deadline was missed")
	}
	g := busy(700 * ms)
	if g.Open(now, time.Second) || !g.Open(now, 2*time.Second) || !g.Open(now, admitting.Never) {
		t.Error("want an extra attempt to be refused exactly if it has less time than a slow answer takes")
	}
}

func TestGateConcurrently(t *testing.T) {
	t.Parallel()
	g := new(gate)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for at := range 1000 {
				now := time.Duration(at) * ms
				running := g.enter(now, time.Second)
				switch {
				case running == 0:
				case random.IntN(10) == 0:
					g.leave(now, time.Second, admitting.Missed)
				default:
					g.answer(now, time.Duration(random.IntN(int(time.Second))), time.Second, running)
				}
				_ = g.Open(now, time.Second)
			}
		})
	}
	all.Wait()
	if g.running != 0 {
		t.Errorf("%d run; want none", g.running)
	}
}

func TestGateAllocations(t *testing.T) {
	g := busy(700 * ms)
	at := now
	if n := testing.AllocsPerRun(100, func() {
		at += ms
		if running := g.enter(at, time.Second); running > 0 {
			g.answer(at, 700*ms, time.Second, running)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call; want none", n)
	}
}
