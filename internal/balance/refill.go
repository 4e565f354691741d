// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import "time"

// Refill estimates how long it takes until a budget pays for an extra attempt of c: 0 if it would now, or if that is unknown,
// as for a budget that a user has implemented.
func Refill(b Budget, now time.Duration, c Charge) time.Duration {
	if own, ok := b.(Reloadable); ok {
		return own.Refill(now, c)
	}
	return 0
}

// Refill returns 0: other kinds than ratio refill with successful calls and finished attempts, and not with time.
func (indifferent) Refill(time.Duration, Charge) time.Duration { return 0 }

// Refill assumes that calls continue as in the last window, and that no other attempt is charged: spending leaves the window,
// and calls fill the reserve. If that is not enough, or if the reserve is a pool, it returns one window.
func (r *ratioBudget) Refill(now time.Duration, c Charge) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, v := r.at(now)
	cost := c.cost(r.rates.costs)
	earned, _ := r.totals(&w)
	calls, _ := w.sum()
	for i := range slots + 1 {
		at := w.start + time.Duration(i)*w.width
		wait := max(since(at, now), 0)
		rest := w
		rest.advance(at, w.counted)
		_, spent := rest.sum()
		if earned-spent >= cost || cost <= v.after(wait, calls, r.config.Window) {
			return wait
		}
	}
	return r.config.Window
}

// after returns the tokens of the reserve after a time with so many calls per window.
func (v *reserve) after(wait time.Duration, calls int64, window time.Duration) int64 {
	byTime := int64(float64(micro(reservePerSecond)) * wait.Seconds())
	byCalls := int64(float64(micro(reservePerCall)) * float64(calls) * float64(wait) / float64(window))
	return min(v.tokens+min(byTime, byCalls), v.capacity)
}
