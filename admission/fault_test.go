// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/hooks/admitting"
)

// made is a call of a service without a queue: nothing changes how long it takes.
type made struct{ at, took, left time.Duration }

// play plays calls in order, and returns how many are refused, and how many extra attempts would be.
func play(g *gate, calls []made) (refused, queued int) {
	type end struct {
		at      time.Duration
		of      made
		running int
	}
	var ends []end
	until := func(now time.Duration) {
		slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
		for len(ends) > 0 && ends[0].at <= now {
			e := ends[0]
			ends = ends[1:]
			g.answer(e.at, e.of.took, e.of.left, e.running)
		}
	}
	for _, call := range calls {
		until(call.at)
		if !g.Open(call.at, call.left) {
			queued++
		}
		running := g.enter(call.at, call.left)
		if running == 0 {
			refused++
			continue
		}
		ends = append(ends, end{call.at + call.took, call, running})
	}
	until(admitting.Never)
	return refused, queued
}

// Slow services that are never late. With the rate of only the last 3 s, most of their calls were refused.
func TestGate_NeverLate(t *testing.T) {
	t.Parallel()
	const second = time.Second
	repeat := func(n int, every time.Duration, calls ...made) (list []made) {
		for i := range n {
			for _, c := range calls {
				c.at += time.Duration(i) * every
				list = append(list, c)
			}
		}
		return list
	}
	batch := slices.Repeat([]made{{second, 700 * ms, second}}, 10)
	for name, calls := range map[string][]made{
		"batches of ten every 2 s, 0.7 of a second":   repeat(30, 2*second, batch...),
		"batches of ten every 10 s, 0.7 of a second":  repeat(30, 10*second, batch...),
		"one call in 5 s, 21 s of 30":                 repeat(60, 5*second, made{5 * second, 21 * second, 30 * second}),
		"one call in 5 s, 25 s of 30":                 repeat(60, 5*second, made{5 * second, 25 * second, 30 * second}),
		"ten a second, 0.8 of a second":               repeat(300, 100*ms, made{100 * ms, 800 * ms, second}),
		"ten a second, every second one 0.9 of it":    repeat(150, 200*ms, made{100 * ms, 700 * ms, second}, made{200 * ms, 900 * ms, second}),
		"a step from fast to slow, in between nobody": append(repeat(100, 100*ms, made{0, 20 * ms, second}), repeat(100, 100*ms, made{60 * second, 800 * ms, second})...),
	} {
		calls = append([]made{{0, 20 * ms, second}}, calls...) // the fastest answer ever
		if refused, queued := play(new(gate), calls); refused != 0 || queued != 0 {
			t.Errorf("%s: of %d calls, %d are refused, and %d extra attempts", name, len(calls), refused, queued)
		}
	}
}

// The same while the gate is armed, because another process sends more calls than the service can bear: as many calls as were
// answered in time are not refused.
func TestGate_NeverLateWhileArmed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ every, took, left time.Duration }{
		"batches":    {2 * time.Second, 700 * ms, time.Second},
		"long calls": {5 * time.Second, 21 * time.Second, 30 * time.Second},
	} {
		g := new(gate)
		g.arm(24*time.Hour, admitting.Never)
		calls := []made{{0, 20 * ms, time.Second}}
		for i := range 300 {
			n := 10
			if row.took > row.every {
				n = 1
			}
			for range n {
				calls = append(calls, made{time.Duration(i+1) * row.every, row.took, row.left})
			}
		}
		if refused, queued := play(g, calls); refused > len(calls)/100 || queued == 0 {
			t.Errorf("%s: of %d calls, %d are refused; %d times there was a queue", name, len(calls), refused, queued)
		}
	}
}

// A server answers 100 calls a second, from 30 s on 10; 25 a second come, with a deadline of a second, and at 15 s one with
// another deadline. That one changes nothing: the server still answers calls in time.
func TestGate_OneLongDeadline(t *testing.T) {
	t.Parallel()
	serve := func(other time.Duration) (inTime int) {
		type end struct {
			at, took, left time.Duration
			running        int
		}
		g := new(gate)
		var ends []end         // of attempts that run, by time
		var free time.Duration // when the server has no more work
		for at := 10 * time.Second; at < 90*time.Second; at += 40 * ms {
			for len(ends) > 0 && ends[0].at <= at {
				e := ends[0]
				ends = ends[1:]
				if e.took > e.left {
					g.leave(e.at, e.left, admitting.Missed)
					continue
				}
				g.answer(e.at, e.took, e.left, e.running)
				if e.at > 30*time.Second {
					inTime++
				}
			}
			left, work := time.Second, 10*ms
			if at == 15*time.Second {
				left = other
			}
			if at >= 30*time.Second {
				work = 100 * ms
			}
			running := g.enter(at, left)
			if running > 0 {
				free = max(free, at) + work
				ends = append(ends, end{at + min(free-at, left), free - at, left, running})
			}
		}
		return inTime
	}
	for _, other := range []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, 60 * 365 * 24 * time.Hour} {
		if got := serve(other); got < 500 {
			t.Errorf("one call with %v: %d responses in time in the minute after; want over 500 of 600", other, got)
		}
	}
}
