// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/interceptor"
)

const (
	interval   = 2 * time.Second // between two samples
	maxSamples = 150             // of a budget: five minutes
	maxBudgets = 64              // of a Retrier, that are shown and sampled
)

// history is how the budgets have stood in the last minutes. It is written to every two seconds for as long as
// the page is in use, by no goroutine of its own.
type history struct {
	retriers []*interceptor.Retrier
	stopped  atomic.Bool // nobody can see it any more

	mu     sync.Mutex // guards all below
	timer  *time.Timer
	begun  bool               // the first samples have been taken
	last   map[balance]counts // of all balances, those that are not shown too
	series map[balance]*series
}

// counts are what a balance had granted and denied when they were last read.
type counts struct{ granted, denied uint64 }

// balance names one of a Retrier's.
type balance struct {
	retrier int                     // its place in the list
	is      interceptor.BudgetState // without its numbers
}

// series is how one balance has stood.
type series struct {
	samples []sample // the oldest first
}

// sample is how a balance stands, and what has happened since the sample before.
type sample struct {
	At      time.Time `json:"at"`
	Balance float64   `json:"balance"` // ÷ capacity, 0 to 1
	Granted uint64    `json:"granted"`
	Denied  uint64    `json:"denied"`
}

func newHistory(retriers []*interceptor.Retrier) *history {
	h := &history{retriers: retriers, series: map[balance]*series{}, last: map[balance]counts{}}
	h.take()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(interval, h.tick)
	return h
}

// tick takes samples, and again later.
func (h *history) tick() {
	if h.stopped.Load() {
		return
	}
	h.take()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer.Reset(interval)
}

// take takes a sample of every budget.
func (h *history) take() {
	for i, r := range h.retriers {
		h.add(i, r.State().Budgets)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
}

// add adds a sample of a Retrier's budgets that are shown, and forgets those that are not.
func (h *history) add(retrier int, budgets []interceptor.BudgetState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	happened := h.count(retrier, budgets)
	shown, _ := scarcest(budgets)
	kept := map[balance]bool{}
	for _, b := range shown {
		key := balanceOf(retrier, b)
		kept[key] = true
		s := h.series[key]
		if s == nil {
			s = new(series)
			h.series[key] = s
		}
		if len(s.samples) == maxSamples {
			s.samples = append(s.samples[:0], s.samples[1:]...)
		}
		s.samples = append(s.samples, sample{time.Now().UTC(), share(b), happened[key].granted, happened[key].denied})
	}
	maps.DeleteFunc(h.series, func(key balance, _ *series) bool { return key.retrier == retrier && !kept[key] })
}

// count returns what a Retrier's balances have counted since they were last read. It requires mu.
func (h *history) count(retrier int, budgets []interceptor.BudgetState) map[balance]counts {
	happened := map[balance]counts{}
	for _, b := range budgets {
		key := balanceOf(retrier, b)
		before, known := h.last[key]
		if b.Granted < before.granted || b.Denied < before.denied { // another balance has taken its place
			before = counts{}
		}
		if !known && !h.begun { // what was before is not of these minutes
			before = counts{b.Granted, b.Denied}
		}
		happened[key] = counts{b.Granted - before.granted, b.Denied - before.denied}
		h.last[key] = counts{b.Granted, b.Denied}
	}
	maps.DeleteFunc(h.last, func(key balance, _ counts) bool {
		_, there := happened[key]
		return key.retrier == retrier && !there
	})
	return happened
}

// of is how a balance has stood, the oldest sample first.
func (h *history) of(key balance) []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.series[key]; s != nil {
		return append([]sample(nil), s.samples...)
	}
	return nil
}

func balanceOf(retrier int, b interceptor.BudgetState) balance {
	b.Balance, b.Capacity, b.Granted, b.Denied = 0, 0, 0, 0
	return balance{retrier, b}
}

// share is the balance ÷ capacity, 0 to 1; 1 for a budget without a limit, and 0 for one without a capacity.
func share(b interceptor.BudgetState) float64 {
	switch {
	case math.IsInf(b.Capacity, 1):
		return 1
	case b.Capacity > 0:
		return min(max(b.Balance/b.Capacity, 0), 1)
	default:
		return 0
	}
}
