// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/policy"
)

const ms = time.Millisecond

var kinds = []policy.Criticality{policy.CriticalitySheddable, policy.CriticalityDefault, policy.CriticalityCritical}

// busy is a gate of a service that has answered 10 calls a second until 10 s, first in 20 ms and then in took.
func busy(took time.Duration) *Gate {
	g := New()
	c := g.Class(policy.CriticalityDefault)
	for at := time.Duration(0); at < 10*time.Second; at += 100 * ms {
		c.Add()
		if at < 9*time.Second {
			c.Answered(at, 20*ms)
		} else {
			c.Answered(at, took)
		}
	}
	return g
}

// run adds attempts that run.
func (g *Gate) run(n int, c policy.Criticality) *Gate {
	for range n {
		g.Class(c).Add()
	}
	return g
}

func TestGate(t *testing.T) {
	t.Parallel()
	const (
		sheddable = policy.CriticalitySheddable
		usual     = policy.CriticalityDefault
		critical  = policy.CriticalityCritical
	)
	// Of 10 answers a second, 9 fit into 0.9 of a second.
	for name, row := range map[string]struct {
		gate   *Gate
		now    time.Duration
		left   time.Duration
		class  policy.Criticality
		admits bool
	}{
		"nothing is known":                    {New().run(1000, usual), 0, time.Second, usual, true},
		"fast answers":                        {busy(20*ms).run(1000, usual), 10 * time.Second, time.Second, usual, true},
		"answers at the bound of slow":        {busy(600*ms).run(1000, usual), 10 * time.Second, time.Second, usual, true},
		"slow answers":                        {busy(601*ms).run(1000, usual), 10 * time.Second, time.Second, usual, false},
		"slow answers, not full":              {busy(601*ms).run(8, usual), 10 * time.Second, time.Second, usual, true},
		"slow answers, just full":             {busy(601*ms).run(9, usual), 10 * time.Second, time.Second, usual, false},
		"answers at twice the fastest":        {busy(40*ms).run(1000, usual), 10 * time.Second, 60 * ms, usual, true},
		"answers over twice the fastest":      {busy(41*ms).run(1000, usual), 10 * time.Second, 60 * ms, usual, false},
		"a call with more time":               {busy(601*ms).run(1000, usual), 10 * time.Second, 1002 * ms, usual, true},
		"a call with less time":               {busy(300*ms).run(9, usual), 10 * time.Second, 499 * ms, usual, false},
		"a call without a deadline":           {busy(601*ms).run(1000, usual), 10 * time.Second, Never, usual, true},
		"a call whose deadline has passed":    {busy(601*ms).run(1000, usual), 10*time.Second + 1, 0, usual, true},
		"the answers are recent":              {busy(601*ms).run(1000, usual), 11900 * ms, time.Second, usual, false},
		"the answers are old":                 {busy(601*ms).run(1000, usual), 11900*ms + 2, time.Second, usual, true},
		"sheddable, half full":                {busy(601*ms).run(5, usual), 10 * time.Second, time.Second, sheddable, false},
		"sheddable, less than half full":      {busy(601*ms).run(4, usual), 10 * time.Second, time.Second, sheddable, true},
		"default, sheddable calls run":        {busy(601*ms).run(9, sheddable), 10 * time.Second, time.Second, usual, false},
		"critical, others run":                {busy(601*ms).run(1000, usual), 10 * time.Second, time.Second, critical, true},
		"critical, full of its kind":          {busy(601*ms).run(9, critical), 10 * time.Second, time.Second, critical, false},
		"default, critical calls run":         {busy(601*ms).run(9, critical), 10 * time.Second, time.Second, usual, false},
		"nothing runs":                        {busy(601 * ms), 10 * time.Second, time.Second, usual, true},
		"nothing runs, sheddable":             {busy(601 * ms), 10 * time.Second, time.Second, sheddable, true},
		"one runs, in little time":            {busy(601*ms).run(1, usual), 10 * time.Second, 100 * ms, usual, false},
		"one runs, in little time, critical":  {busy(601*ms).run(1, usual), 10 * time.Second, 100 * ms, critical, true},
		"a criticality that there is none of": {busy(601*ms).run(9, usual), 10 * time.Second, time.Second, 99, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := row.gate.State()
			want := before
			if row.admits {
				want.Running++
			} else {
				want.Refused++
			}
			if got := row.gate.Class(row.class).Enter(row.now, row.left); got != row.admits || row.gate.State() != want {
				t.Errorf("admitted: %v, %+v after %+v; want %v", got, row.gate.State(), before, row.admits)
			}
		})
	}
}

func TestGateCounts(t *testing.T) {
	t.Parallel()
	g := busy(700*ms).run(1000, policy.CriticalityDefault)
	if !g.Counts().Enter(10*time.Second, time.Second) {
		t.Error("a call that is only counted is refused")
	}
	if got, want := g.State(), (State{Running: 1001}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

func TestGateSlowService(t *testing.T) {
	t.Parallel()
	g := New() // which has never answered faster
	c := g.Class(policy.CriticalityDefault)
	for range 10 {
		c.Add()
		c.Answered(time.Second, 700*ms)
	}
	if g.run(1000, policy.CriticalityDefault); !c.Enter(time.Second, time.Second) {
		t.Error("refused, while answers take as long as they always did")
	}
}

func TestGateOneFastAnswer(t *testing.T) {
	t.Parallel()
	g := busy(700*ms).run(1000, policy.CriticalityDefault)
	c := g.Class(policy.CriticalityDefault)
	for i, want := range []bool{true, true, false} { // admitted after a fast answer, until those that count are slow
		took := 700 * ms
		if i == 0 {
			took = 599 * ms
		}
		c.Answered(10*time.Second, took)
		if got := c.Enter(10*time.Second, time.Second); got != want {
			t.Errorf("answer %d: admitted: %v; want %v", i+1, got, want)
		}
	}
}

func TestGateReports(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reports []float64
		now     time.Duration
		admits  bool
	}{
		"none":                        {nil, 10 * time.Second, false},
		"one is not enough":           {[]float64{0.1}, 10 * time.Second, false},
		"busy":                        {[]float64{0.8, 3}, 10 * time.Second, false},
		"one server is not busy":      {[]float64{1, 0.79}, 10 * time.Second, true},
		"only the last two count":     {[]float64{0.1, 1, 1}, 10 * time.Second, false},
		"what was reported is old":    {[]float64{0.1, 0.1}, 10*time.Second + 500*ms + 2, false},
		"what was reported is recent": {[]float64{0.1, 0.1}, 10*time.Second + 500*ms + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := busy(700*ms).run(1000, policy.CriticalityDefault)
			c := g.Class(policy.CriticalityDefault)
			for _, u := range row.reports {
				c.Reported(8500*ms, u)
			}
			if got := c.Enter(row.now, time.Second); got != row.admits {
				t.Errorf("admitted: %v; want %v", got, row.admits)
			}
		})
	}
}

func TestQueued(t *testing.T) {
	t.Parallel()
	if c := busy(20 * ms).Class(policy.CriticalityDefault); c.Queued(10*time.Second, 30*ms) {
		t.Error("an extra attempt is refused while answers are as fast as ever")
	}
	c := busy(700 * ms).Class(policy.CriticalityCritical)
	if !c.Queued(10*time.Second, time.Second) || c.Queued(10*time.Second, 2*time.Second) || c.Queued(10*time.Second, Never) {
		t.Error("want an extra attempt to be refused exactly if it has less time than a slow answer takes")
	}
}

// Whatever happens, attempts that have ended are not counted, an idle gate admits, and who is refused first is.
func TestGateModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			g       = New()
			now     time.Duration
			running []policy.Criticality
			refused uint64
		)
		left := func() time.Duration {
			return rapid.SampledFrom([]time.Duration{Never, time.Second, 100 * ms, 0, -ms}).Draw(t, "left")
		}
		kind := rapid.SampledFrom(kinds)
		remove := func() policy.Criticality {
			i := rapid.IntRange(0, len(running)-1).Draw(t, "attempt")
			c := running[i]
			running = slices.Delete(running, i, i+1)
			return c
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(*rapid.T) { now += time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "passes")) },
			"enter": func(t *rapid.T) {
				c, left := kind.Draw(t, "criticality"), left()
				stricter := true // none that is refused later would be refused now
				for _, other := range kinds {
					full := g.queued(now, left) && g.full(now, left, other)
					if other <= c {
						stricter = full
					} else if full && !stricter {
						t.Fatalf("%v is refused, and a less critical call is not", other)
					}
				}
				if g.Class(c).Enter(now, left) {
					running = append(running, c)
					return
				}
				refused++
				if len(running) == 0 || left == Never {
					t.Fatalf("refused with %d attempts running and %v left", len(running), left)
				}
			},
			"add": func(t *rapid.T) {
				c := kind.Draw(t, "criticality")
				g.Class(c).Add()
				running = append(running, c)
			},
			"leave": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip()
				}
				g.Class(remove()).Leave()
			},
			"reported": func(t *rapid.T) {
				g.Class(policy.CriticalityDefault).Reported(now, rapid.SampledFrom([]float64{0.1, 1}).Draw(t, "utilization"))
			},
			"answered": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip()
				}
				took := rapid.SampledFrom([]time.Duration{0, 20 * ms, 700 * ms, 10 * time.Second}).Draw(t, "took")
				g.Class(remove()).Answered(now, took)
			},
			"": func(t *rapid.T) {
				if got := g.State(); got != (State{Running: len(running), Refused: refused}) {
					t.Fatalf("%+v; want %d running, %d refused", got, len(running), refused)
				}
			},
		})
		for len(running) > 0 {
			g.Class(remove()).Leave()
		}
		if g.running != [classes]int{} {
			t.Fatalf("running %v; want none of any kind", g.running)
		}
	})
}

func TestGateConcurrently(t *testing.T) {
	t.Parallel()
	g := New()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for at := range 1000 {
				c, now := g.Class(kinds[random.IntN(len(kinds))]), time.Duration(at)*ms
				switch {
				case !c.Enter(now, time.Second):
				case random.IntN(10) == 0:
					c.Leave()
				default:
					c.Answered(now, time.Duration(random.IntN(int(time.Second))))
				}
				_ = c.Queued(now, time.Second)
			}
		})
	}
	all.Wait()
	if g.running != [classes]int{} {
		t.Errorf("running %v; want none", g.running)
	}
}

func TestGateAllocations(t *testing.T) {
	g := busy(700 * ms)
	c := g.Class(policy.CriticalityDefault)
	now := 10 * time.Second
	if n := testing.AllocsPerRun(100, func() {
		now += ms
		if c.Enter(now, time.Second) {
			c.Answered(now, 700*ms)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call; want none", n)
	}
}

func BenchmarkGate(b *testing.B) {
	for name, took := range map[string]time.Duration{"fast": 20 * ms, "slow": 700 * ms} {
		b.Run(name, func(b *testing.B) {
			c := busy(took).Class(policy.CriticalityDefault)
			now := 10 * time.Second
			b.ReportAllocs()
			for b.Loop() {
				now += time.Microsecond
				if c.Enter(now, time.Second) {
					c.Answered(now, took)
				}
			}
		})
	}
}

func BenchmarkGateInParallel(b *testing.B) {
	g := busy(20 * ms)
	b.RunParallel(func(p *testing.PB) {
		c := g.Class(policy.CriticalityDefault)
		for p.Next() {
			if c.Enter(10*time.Second, time.Second) {
				c.Answered(10*time.Second, 20*ms)
			}
		}
	})
}
