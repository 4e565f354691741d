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
	maxBudgets = 64              // of a Retrier, shown and sampled
)

// history has samples of the budgets in the last minutes. A timer adds one every two seconds as long as
// the page is in use.
type history struct {
	retriers []*interceptor.Retrier
	stopped  atomic.Bool // the page is no longer in use

	mu     sync.Mutex // guards all below
	timer  *time.Timer
	begun  bool               // the first samples are taken
	last   map[balance]counts // of all balances, shown or not
	series map[balance]*series
}

// counts are a balance's withdrawals at its last reading.
type counts struct{ granted, refused uint64 }

// balance identifies a balance of a Retrier.
type balance struct {
	retrier int                     // its index in the list
	is      interceptor.BudgetState // without its numbers
}

// series has the samples of one balance.
type series struct {
	samples []sample // the oldest first
}

// sample is the state of a balance, and its withdrawals since the previous sample.
type sample struct {
	At      time.Time `json:"at"`
	Share   float64   `json:"share"` // balance ÷ capacity, 0 to 1
	Granted uint64    `json:"granted"`
	Refused uint64    `json:"refused"`
}

func newHistory(retriers []*interceptor.Retrier) *history {
	h := &history{retriers: retriers, series: map[balance]*series{}, last: map[balance]counts{}}
	h.take()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(interval, h.tick)
	return h
}

// tick takes samples, and schedules itself.
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

// add adds a sample for each shown budget of a Retrier, and drops those of others.
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
		s.samples = append(s.samples, sample{time.Now().UTC(), share(b), happened[key].granted, happened[key].refused})
	}
	maps.DeleteFunc(h.series, func(key balance, _ *series) bool { return key.retrier == retrier && !kept[key] })
}

// count returns the withdrawals of a Retrier's balances since the last reading. h.mu must be held.
func (h *history) count(retrier int, budgets []interceptor.BudgetState) map[balance]counts {
	happened := map[balance]counts{}
	for _, b := range budgets {
		key := balanceOf(retrier, b)
		before, known := h.last[key]
		if b.Granted < before.granted || b.Refused < before.refused { // another balance has replaced it
			before = counts{}
		}
		if !known && !h.begun { // earlier withdrawals don't belong to these minutes
			before = counts{b.Granted, b.Refused}
		}
		happened[key] = counts{b.Granted - before.granted, b.Refused - before.refused}
		h.last[key] = counts{b.Granted, b.Refused}
	}
	maps.DeleteFunc(h.last, func(key balance, _ counts) bool {
		_, there := happened[key]
		return key.retrier == retrier && !there
	})
	return happened
}

// of returns the samples of a balance, the oldest first.
func (h *history) of(key balance) []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.series[key]; s != nil {
		return append([]sample(nil), s.samples...)
	}
	return nil
}

func balanceOf(retrier int, b interceptor.BudgetState) balance {
	b.Balance, b.Capacity, b.Granted, b.Refused = 0, 0, 0, 0
	return balance{retrier, b}
}

// share returns balance ÷ capacity, 0 to 1; 1 for a budget without a limit, and 0 for one without capacity.
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
