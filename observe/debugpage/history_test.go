// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h := newHistory([]*interceptor.Retrier{s.retrier})
		defer h.stopped.Store(true)
		s.On("*", down())
		time.Sleep(interval + interval/2) // the budget is new, so that all of it counts
		_ = s.call(t, getOrder)
		time.Sleep(2 * interval)
		_ = s.call(t, getOrder)
		time.Sleep(interval)
		key := balanceOf(0, s.retrier.State().Budgets[0])
		if got, want := numbers(h.of(key)), "[{0 2 1} {0 0 0} {0 0 1}]"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		time.Sleep(2 * maxSamples * interval)
		if got := h.of(key); len(got) != maxSamples || got[0] != (sample{At: got[1].At.Add(-interval)}) {
			t.Errorf("%d samples, the oldest %+v", len(got), got[0])
		}
		h.add(0, nil)
		if got := h.of(key); got != nil {
			t.Errorf("of a budget that is no more there are %d samples", len(got))
		}
	})
}

// Withdrawals before the page was made don't count.
func TestHistoryBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.On("*", down())
		_ = s.call(t, getOrder)
		h := newHistory([]*interceptor.Retrier{s.retrier})
		defer h.stopped.Store(true)
		s.On("*", testserver.OK())
		time.Sleep(interval + 1)
		if got, want := numbers(h.of(balanceOf(0, s.retrier.State().Budgets[0]))), "[{0 0 0} {0 0 0}]"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

// Sampling stops when the handler is unreachable.
func TestHistoryEnds(t *testing.T) {
	t.Parallel()
	h := newPage(Config{}, []*interceptor.Retrier{newRetrier(t)}).history
	h.add(0, []interceptor.BudgetState{{Name: "orders"}})
	for !h.stopped.Load() {
		runtime.GC()
		runtime.Gosched()
	}
	h.tick()
	if got := len(h.of(balance{0, interceptor.BudgetState{Name: "orders"}})); got != 1 {
		t.Errorf("%d samples; want the one before the end", got)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for b, want := range map[budget.State]float64{
		{Balance: 1, Capacity: 4}:                     0.25,
		{Balance: 9, Capacity: 4}:                     1,
		{Balance: -1, Capacity: 4}:                    0,
		{Balance: math.Inf(1), Capacity: math.Inf(1)}: 1,
		{}: 0,
	} {
		if got := share(interceptor.BudgetState{Balance: b.Balance, Capacity: b.Capacity}); got != want {
			t.Errorf("%+v: %v; want %v", b, got, want)
		}
	}
}

// numbers are samples without their times.
func numbers(samples []sample) string {
	list := []string{}
	for _, s := range samples {
		list = append(list, fmt.Sprintf("{%v %v %v}", s.Share, s.Granted, s.Refused))
	}
	return fmt.Sprint(list)
}

// A newly shown balance has no earlier counts; nor has one that replaces
// another with higher counts, as after a change of its kind.
func TestHistoryOfWhatComesIntoSight(t *testing.T) {
	t.Parallel()
	h := newHistory(nil)
	defer h.stopped.Store(true)
	list := make([]interceptor.BudgetState, maxBudgets+1)
	for i := range list {
		list[i] = interceptor.BudgetState{Name: fmt.Sprint(i), Capacity: 10, Balance: 5}
	}
	last := &list[maxBudgets]
	last.Balance, last.Granted, last.Refused = 10, 1000, 500
	h.add(0, list)
	key := balanceOf(0, *last)
	if got := h.of(key); got != nil {
		t.Fatalf("%v of the one that is not shown", got)
	}
	last.Balance, last.Granted = 0, 1003
	h.add(0, list)
	last.Granted, last.Refused = 2, 1
	h.add(0, list)
	if got, want := numbers(h.of(key)), "[{0 3 0} {0 2 1}]"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestPlot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	got := newPlot([]sample{{At: now.Add(-time.Hour)}, {At: now.Add(-2 * time.Minute), Share: 1}, {At: now, Share: 0.5, Granted: 1, Refused: 3}})
	want := plot{Balance: "179.0,0.0 299.0,20.0", Granted: "M298.0 40.0h2.0v-10.0h-2.0z", Refused: "M298.0 30.0h2.0v-30.0h-2.0z", Most: 4, Newest: now}
	if got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if got, want := fmt.Sprintf("%s %s", got.Times(), got.Minutes()), "[12:25:00 12:27:30 12:30:00] M60 0v40M120 0v40M180 0v40M240 0v40"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if got := newPlot(nil); got != (plot{}) {
		t.Errorf("%+v", got)
	}
}
