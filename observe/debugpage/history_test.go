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
		s.Default(down())
		time.Sleep(interval + interval/2) // the budget is new, so that all of it counts
		_ = s.call(t, getOrder)
		time.Sleep(2 * interval)
		_ = s.call(t, getOrder)
		time.Sleep(interval)
		key := balanceOf(0, s.retrier.Budgets()[0])
		if got, want := fmt.Sprint(h.of(key)), "[{0 2 1} {0 0 0} {0 0 1}]"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		time.Sleep(2 * maxSamples * interval)
		if got := h.of(key); len(got) != maxSamples || got[0] != (sample{}) {
			t.Errorf("%d samples, the oldest %+v", len(got), got[0])
		}
		h.add(0, nil)
		if got := h.of(key); got != nil {
			t.Errorf("of a budget that is no more there are %d samples", len(got))
		}
	})
}

// What happened before the page was made is not of its minutes.
func TestHistoryBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.Default(down())
		_ = s.call(t, getOrder)
		h := newHistory([]*interceptor.Retrier{s.retrier})
		defer h.stopped.Store(true)
		s.Default(testserver.OK())
		time.Sleep(interval + 1)
		if got, want := fmt.Sprint(h.of(balanceOf(0, s.retrier.Budgets()[0]))), "[{0 0 0} {0 0 0}]"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

// A handler that nobody holds is sampled for no longer.
func TestHistoryEnds(t *testing.T) {
	t.Parallel()
	h := newPage(Config{}, []*interceptor.Retrier{newRetrier(t, interceptor.WithBudget("orders", budget.Unlimited))}).history
	for !h.stopped.Load() {
		runtime.GC()
		runtime.Gosched()
	}
	h.tick()
	if got := len(h.of(balance{0, interceptor.BudgetState{Name: "orders"}})); got != 1 {
		t.Errorf("%d samples; want the one at the start", got)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for b, want := range map[interceptor.BudgetState]float64{
		{Balance: 1, Capacity: 4}:                     0.25,
		{Balance: 9, Capacity: 4}:                     1,
		{Balance: -1, Capacity: 4}:                    0,
		{Balance: math.Inf(1), Capacity: math.Inf(1)}: 1,
		{}: 0,
	} {
		if got := share(b); got != want {
			t.Errorf("%+v: %v; want %v", b, got, want)
		}
	}
}

func TestPlot(t *testing.T) {
	t.Parallel()
	got := newPlot([]sample{{Balance: 1}, {Balance: 0.5, Granted: 1, Denied: 3}})
	want := plot{Balance: "297.0,0.0 299.0,20.0", Granted: "M298.0 40.0h2.0v-10.0h-2.0z", Denied: "M298.0 30.0h2.0v-30.0h-2.0z", Most: 4}
	if got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if got := newPlot(nil); got != (plot{}) {
		t.Errorf("%+v", got)
	}
}
