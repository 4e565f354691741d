// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

const (
	ms  = time.Millisecond
	now = 10 * time.Second
)

func (c Class) admits(now, left time.Duration) bool {
	running, _ := c.Enter(now, left)
	return running > 0
}

// busy returns an armed gate, at 10 s, of a service with 10 answers per second; the last ones took as long as given, and the
// fastest ever 20 ms.
func busy(took time.Duration) *Gate {
	g := &Gate{
		last: [recent]time.Duration{took, took}, heard: recent, at: 9900 * ms, fastest: 20 * ms,
		windows: windows{newer: window{answers: 10, busy: time.Second}, began: 9 * time.Second, at: now},
	}
	g.arm(now, Never)
	g.limit = limit{began: now, calls: 100} // far from the bound
	return g
}

// with adds running attempts.
func (g *Gate) with(n int) *Gate {
	g.running += n
	return g
}

// unarmed disarms the gate.
func (g *Gate) unarmed() *Gate {
	g.armed = 0
	return g
}

// inTime records that so many attempts were answered in time.
func (g *Gate) inTime(n int) *Gate {
	g.windows.older.inTime = n
	return g
}

func TestGate(t *testing.T) {
	t.Parallel()
	// Of 10 answers a second, 9 fit into 0.9 of a second.
	for name, row := range map[string]struct {
		gate   *Gate
		now    time.Duration
		left   time.Duration
		admits bool
	}{
		"nothing is known":                 {New().with(1000), 0, time.Second, true},
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
		"a call without a deadline":        {busy(601 * ms).with(1000), now, Never, true},
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
			if got, would := row.gate.Class(true).Enter(row.now, row.left); got != running || would || row.gate.State() != want {
				t.Errorf("%d run, %+v; want %d, %+v", got, row.gate.State(), running, want)
			}
		})
	}
}

// Missed deadlines arm a gate, and so does a server that reports that it is full. It stays armed while answers are slow.
func TestGate_Arms(t *testing.T) {
	t.Parallel()
	leave := func(n int, why Leaving) func(*Gate) {
		return func(g *Gate) {
			for range n {
				g.with(1).Class(true).Leave(now, time.Second, why)
			}
		}
	}
	type step struct {
		events func(*Gate)
		at     time.Duration
		armed  bool
	}
	answered := func(took, at time.Duration) func(*Gate) {
		return func(g *Gate) { g.with(1).Class(true).RecordAnswer(at, took, time.Second, 1) }
	}
	const stay = stays * leastWindow
	for name, steps := range map[string][]step{
		"nothing":             {{leave(10, LeavingOther), now, false}},
		"answers":             {{leave(10, LeavingAnswered), now, false}},
		"one deadline":        {{leave(1, LeavingMissed), now, false}},
		"two deadlines":       {{leave(2, LeavingMissed), now, true}},
		"four of 300":         {{leave(300, LeavingAnswered), now, false}, {leave(3, LeavingMissed), now, false}, {leave(1, LeavingMissed), now, true}},
		"full":                {{leave(1, LeavingFull), now, true}},
		"for some windows":    {{leave(2, LeavingMissed), now + stay - 1, true}, {leave(0, 0), now + stay, false}},
		"slow answers extend": {{leave(2, LeavingMissed), now, true}, {answered(601*ms, now+stay/2), now + stay, true}, {answered(600*ms, now+stay), now + stay*3/2, false}},
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
		c := g.Class(true)
		c.Leave(now+2*time.Second, time.Second, LeavingMissed)
		if got := c.admits(now+3*time.Second, row.left); got != row.admits {
			t.Errorf("%s: admits: %v; want %v", name, got, row.admits)
		}
	}
}

// Missed deadlines of hurried callers do not arm a gate for a caller with much more time.
func TestGate_HurriedCallers(t *testing.T) {
	t.Parallel()
	for missed, want := range map[time.Duration]bool{60 * ms: true, 100 * ms: true, 101 * ms: false} {
		g := busy(7 * time.Second).with(1000).unarmed()
		c := g.Class(true)
		for range 2 {
			c.Leave(now, missed, LeavingMissed)
		}
		if got := c.admits(now, 10*time.Second); got != want {
			t.Errorf("after two missed deadlines of %v, a call with 10 s is admitted: %v; want %v", missed, got, want)
		}
	}
}

func TestGate_WouldRefuse(t *testing.T) {
	t.Parallel()
	g := busy(700 * ms).with(1000)
	if running, would := g.Class(false).Enter(now, time.Second); running != 1001 || !would {
		t.Error("a call that no mode enforces a policy for is refused")
	}
	if got, want := g.State(), (State{Running: 1001, WouldRefuse: 1}); got != want {
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
		c := g.Class(true)
		if row.says {
			c.Leave(now, time.Second, LeavingFull)
		}
		for range 100 {
			c.Enter(now, time.Second)
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
	if !g.Class(true).admits(now, time.Second) {
		t.Error("refused, while answers take as long as they always did")
	}
}

func TestGate_OneFastAnswer(t *testing.T) {
	t.Parallel()
	g := busy(700 * ms).with(1000)
	c := g.Class(true)
	for i, want := range []bool{true, true, false} { // admitted after a fast answer, until the counted ones are slow
		took := 700 * ms
		if i == 0 {
			took = 599 * ms
		}
		c.RecordAnswer(now, took, time.Second, 1)
		if got := c.admits(now, time.Second); got != want {
			t.Errorf("answer %d: admitted: %v; want %v", i+1, got, want)
		}
	}
}

func TestGate_RecordAnswer(t *testing.T) {
	t.Parallel()
	g := New().with(3)
	c := g.Class(true)
	for _, took := range []time.Duration{901 * ms, 900 * ms, 950 * ms} {
		c.RecordAnswer(now, took, time.Second, int(took/ms))
	}
	if w := g.windows.newer; w.answers != 3 || w.inTime != 900 || g.fastest != 900*ms {
		t.Errorf("%+v, the fastest %v; want 3 answers, 900 in time and 900ms", w, g.fastest)
	}
}

func TestClass_Any(t *testing.T) {
	t.Parallel()
	if (Class{}).Any() || !New().Class(true).Any() {
		t.Error("a class has a gate, and the zero value has none")
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

func TestGate_Queued(t *testing.T) {
	t.Parallel()
	if busy(20*ms).Class(true).Queued(now, 30*ms) {
		t.Error("an extra attempt is refused while answers are as fast as ever")
	}
	if busy(700*ms).unarmed().Class(true).Queued(now, time.Second) {
		t.Error("an extra attempt is refused while no deadline was missed")
	}
	c := busy(700 * ms).Class(true)
	if !c.Queued(now, time.Second) || c.Queued(now, 2*time.Second) || c.Queued(now, Never) {
		t.Error("want an extra attempt to be refused exactly if it has less time than a slow answer takes")
	}
}

func TestGateConcurrently(t *testing.T) {
	t.Parallel()
	g := New()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for at := range 1000 {
				c, now := g.Class(true), time.Duration(at)*ms
				running, _ := c.Enter(now, time.Second)
				switch {
				case running == 0:
				case random.IntN(10) == 0:
					c.Leave(now, time.Second, LeavingMissed)
				default:
					c.RecordAnswer(now, time.Duration(random.IntN(int(time.Second))), time.Second, running)
				}
				_ = c.Queued(now, time.Second)
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
	c, at := g.Class(true), now
	if n := testing.AllocsPerRun(100, func() {
		at += ms
		if running, _ := c.Enter(at, time.Second); running > 0 {
			c.RecordAnswer(at, 700*ms, time.Second, running)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call; want none", n)
	}
}
