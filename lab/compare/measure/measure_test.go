// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// still is a meter whose time passes, and whose allocations happen, only when a subject says so.
type still struct {
	now, spent     time.Duration
	objects, bytes uint64
	settled        int
}

func (m *still) Now() time.Duration          { return m.now }
func (m *still) Processor() time.Duration    { return m.spent }
func (m *still) Allocated() (uint64, uint64) { return m.objects, m.bytes }
func (m *still) Settle()                     { m.settled++ }
func (m *still) plan(sessions, rounds int) Plan {
	return Plan{sessions, rounds, time.Millisecond, 1, 0, m}
}

// takes is a subject whose operations take a fixed time, and allocate 3 objects of 8 bytes.
func (m *still) takes(name string, each time.Duration, log *[]string) Subject {
	return Subject{name, func(n int) error {
		m.now += time.Duration(n) * each
		m.spent += time.Duration(n) * (each + 100) // a processor more for some time
		m.objects += 3 * uint64(n)
		m.bytes += 24 * uint64(n)
		if log != nil {
			*log = append(*log, fmt.Sprintf("%s×%d", name, n))
		}
		return nil
	}}
}

func always(subjects ...Subject) Open {
	return func() ([]Subject, func() error, error) { return subjects, func() error { return nil }, nil }
}

func TestCosts(t *testing.T) {
	t.Parallel()
	m := new(still)
	p := m.plan(2, 5)
	p.Base = 1
	costs, err := Compare(p, always(m.takes("slow", 300, nil), m.takes("base", 200, nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Cost{
		{"slow", 3333, Quartiles{300, 300, 300}, Quartiles{1.5, 1.5, 1.5}, Quartiles{4. / 3, 4. / 3, 4. / 3}, 3, 24},
		{"base", 5000, Quartiles{200, 200, 200}, Quartiles{1, 1, 1}, Quartiles{1, 1, 1}, 3, 24},
	}
	if !slices.Equal(costs, want) {
		t.Errorf("costs %+v; want %+v", costs, want)
	}
}

func TestRatioWithinARound(t *testing.T) {
	t.Parallel()
	m, slower := new(still), 1
	load := func(name string, each time.Duration) Subject { // the machine gets slower and slower
		return Subject{name, func(n int) error {
			m.now += time.Duration(n*slower) * each
			return nil
		}}
	}
	p := m.plan(1, 9)
	rounds := 0
	p.Meter = &everyRound{still: m, subjects: 2, next: func() { rounds++; slower *= 2 }}
	costs, err := Compare(p, always(load("base", 100), load("twice", 200)))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Quartiles{2, 2, 2}); costs[1].Ratio != want {
		t.Errorf("ratio %+v; want %+v", costs[1].Ratio, want)
	}
	if costs[1].Processor != (Quartiles{}) {
		t.Errorf("effort %+v where no processor was seen to do anything", costs[1].Processor)
	}
	if rounds != 9 || costs[0].Time.Median != 100<<5 {
		t.Errorf("%d rounds, median time %v; want 9, %d", rounds, costs[0].Time.Median, 100<<5)
	}
}

// everyRound calls next before each round.
type everyRound struct {
	*still

	subjects int
	next     func()
}

func (m *everyRound) Settle() {
	if m.settled%m.subjects == 0 {
		m.next()
	}
	m.still.Settle()
}

func TestRoundOrder(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (rounds [][]string) {
		m, log := new(still), []string{}
		p := m.plan(1, 8)
		p.Seed = seed
		if _, err := Compare(p, always(m.takes("a", 400*time.Microsecond, &log), m.takes("b", 500*time.Microsecond, &log), m.takes("c", time.Millisecond, &log))); err != nil {
			t.Fatal(err)
		}
		return slices.Collect(slices.Chunk(log[len(log)-24:], 3))
	}
	first := run(1)
	orders := map[string]bool{}
	for _, round := range first {
		orders[strings.Join(round, " ")] = true
		if got := strings.Join(slices.Sorted(slices.Values(round)), " "); got != "a×2 b×2 c×1" {
			t.Errorf("a round is %s", got)
		}
	}
	if len(orders) < 2 {
		t.Errorf("all rounds have one order: %v", orders)
	}
	if again := run(1); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("the same seed gives %v, then %v", first, again)
	}
	if other := run(2); fmt.Sprint(other) == fmt.Sprint(first) {
		t.Errorf("another seed gives the same orders: %v", other)
	}
}

func TestSliceAfterPause(t *testing.T) {
	t.Parallel()
	m, runs := new(still), 0
	pausing := Subject{"pausing", func(n int) error {
		m.now += time.Duration(n) * time.Microsecond
		if runs++; runs%3 != 0 { // most of the time, and the first call makes a connection
			m.now += time.Second
		}
		return nil
	}}
	costs, err := Compare(m.plan(1, 1), always(pausing))
	if err != nil || costs[0].Count != 1000 {
		t.Errorf("%+v, %v; want slices of 1000 operations", costs, err)
	}
}
