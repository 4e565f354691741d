// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/testkit"
)

// still is a meter whose time and allocations change only when a subject changes them.
type still struct {
	at, spent      time.Duration
	objects, bytes uint64
}

func (m *still) now() time.Duration          { return m.at }
func (m *still) processor() time.Duration    { return m.spent }
func (m *still) allocated() (uint64, uint64) { return m.objects, m.bytes }
func (m *still) plan(rounds int) plan        { return plan{rounds, time.Millisecond, m} }

// takes returns a subject whose operations take a fixed time, and allocate 3 objects of 8 bytes.
func (m *still) takes(name string, each time.Duration, log *[]string) *subject {
	return &subject{name: name, run: func(n int) error {
		m.at += time.Duration(n) * each
		m.spent += time.Duration(n) * (each + 100) // a second processor for some time
		m.objects += 3 * uint64(n)
		m.bytes += 24 * uint64(n)
		if log != nil {
			*log = append(*log, fmt.Sprintf("%s×%d", name, n))
		}
		return nil
	}}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	m := new(still)
	costs, err := m.plan(5).compare([]*subject{m.takes("slow", 300, nil), m.takes("base", 200, nil)}, 1)
	if want := []cost{{1.5, 4. / 3, 300, 3, 24}, {1, 1, 200, 3, 24}}; err != nil || !slices.Equal(costs, want) {
		t.Errorf("costs %+v, %v; want %+v", costs, err, want)
	}
}

func TestRatioWithinARound(t *testing.T) {
	t.Parallel()
	m, runs := new(still), 0
	load := func(name string, each time.Duration) *subject { // the machine gets slower with each round
		return &subject{name: name, run: func(n int) error {
			runs++
			m.at += time.Duration(n) * each << (runs / 2)
			return nil
		}}
	}
	a, b := load("base", 100), load("twice", 200)
	a.count, b.count = 10, 10
	p := m.plan(8)
	for range p.rounds {
		for _, s := range []*subject{a, b} {
			testkit.NoError(t, p.measure(s))
			runs -= runs % 2 // both of a round are as slow
		}
		runs += 2
	}
	if got := ratio(b.times, a.times); got != 2 {
		t.Errorf("ratio %v; want 2", got)
	}
	if got := ratio(b.spent, a.spent); got != 0 {
		t.Errorf("ratio %v where no processor was seen to do anything; want 0", got)
	}
}

func TestRoundOrder(t *testing.T) {
	t.Parallel()
	m, log, orders := new(still), []string{}, map[string]bool{}
	subjects := []*subject{m.takes("a", 400*time.Microsecond, &log), m.takes("b", 500*time.Microsecond, &log), m.takes("c", time.Millisecond, &log)}
	testkit.Must(m.plan(20).compare(subjects, 0))(t)
	for round := range slices.Chunk(log[len(log)-60:], 3) {
		orders[strings.Join(round, " ")] = true
		if got := strings.Join(slices.Sorted(slices.Values(round)), " "); got != "a×2 b×2 c×1" {
			t.Errorf("a round is %s", got)
		}
	}
	if len(orders) < 2 {
		t.Errorf("all rounds have one order: %v", orders)
	}
}

func TestCompareErrors(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	for name, at := range map[string]int{"broken": 1, "late": 6} {
		m, runs := new(still), 0
		s := &subject{name: name, run: func(int) error {
			runs++
			if runs == at {
				return bad
			}
			m.at += time.Millisecond
			return nil
		}}
		if _, err := m.plan(5).compare([]*subject{m.takes("fine", time.Millisecond, nil), s}, 0); !errors.Is(err, bad) || err.Error() != name+": bad" {
			t.Errorf("%v; want %s: bad", err, name)
		}
	}
}

func TestQuartiles(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		values []float64
		want   quartiles
	}{
		{[]float64{7}, quartiles{7, 7, 7}},
		{[]float64{3, 1}, quartiles{1.5, 2, 2.5}},
		{[]float64{5, 1, 4, 2, 3}, quartiles{2, 3, 4}},
	} {
		if got := quartilesOf(x.values); got != x.want {
			t.Errorf("of %v: %v; want %v", x.values, got, x.want)
		}
	}
}

// Garbage of other tests may go while this one measures.
func TestHold(t *testing.T) {
	const size, slack = 64 << 20, 8 << 20
	before := hold()
	kept := make([]byte, size)
	with := hold() - before
	runtime.KeepAlive(kept)
	if without := hold() - before; math.Abs(with-size) > slack || without > slack {
		t.Errorf("%.0f bytes with %d, %.0f without; want about as many, and none", with, size, without)
	}
}
