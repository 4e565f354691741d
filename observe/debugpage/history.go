// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
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
	begun  bool // the first samples have been taken
	series map[balance]*series
}

// balance names one of a Retrier's.
type balance struct {
	retrier int                     // its place in the list
	is      interceptor.BudgetState // without its numbers
}

// series is how one balance has stood.
type series struct {
	samples         []sample // the oldest first
	granted, denied uint64   // when the last was taken
}

// sample is how a balance stands, and what has happened since the sample before.
type sample struct {
	Balance float64 `json:"balance"` // ÷ capacity, 0 to 1
	Granted uint64  `json:"granted"`
	Denied  uint64  `json:"denied"`
}

func newHistory(retriers []*interceptor.Retrier) *history {
	h := &history{retriers: retriers, series: map[balance]*series{}}
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
		budgets, _, err := readBudgets(r)
		if err != nil {
			continue // the page says it
		}
		h.add(i, budgets)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
}

// add adds a sample of a Retrier's budgets, and forgets those that are no more.
func (h *history) add(retrier int, budgets []interceptor.BudgetState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := map[balance]bool{}
	for key := range h.series {
		gone[key] = key.retrier == retrier
	}
	for _, b := range budgets {
		key := balanceOf(retrier, b)
		delete(gone, key)
		s := h.series[key]
		if s == nil {
			s = new(series)
			if !h.begun { // what was before is not of these minutes
				s.granted, s.denied = b.Granted, b.Denied
			}
			h.series[key] = s
		}
		if len(s.samples) == maxSamples {
			s.samples = append(s.samples[:0], s.samples[1:]...)
		}
		s.samples = append(s.samples, sample{share(b), b.Granted - s.granted, b.Denied - s.denied})
		s.granted, s.denied = b.Granted, b.Denied
	}
	for key, yes := range gone {
		if yes {
			delete(h.series, key)
		}
	}
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
