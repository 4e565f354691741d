// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// reload is what a reload of a [Ratio] did to charges of before its time.
type reload struct {
	at     time.Duration // not before the one before it
	factor float64       // they count so many times as much
	moved  bool          // the window changed:
	oldest time.Duration // earlier ones had expired, and the others count from at
}

// history tells what a permit is worth that was given before a reload. The time of the permit says which
// reloads those are: in the order of times, a charge is never before a reload that it came after.
type history struct {
	latest  []reload
	charged time.Duration // the latest time of a charge
}

func newHistory() history { return history{charged: math.MinInt64} }

// charge is the time of a charge at now.
func (h *history) charge(now time.Duration) time.Duration {
	if n := len(h.latest); n > 0 {
		return max(now, h.latest[n-1].at)
	}
	return now
}

// reload is the time of a reload at now.
func (h *history) reload(now time.Duration) time.Duration {
	return max(h.charge(now), h.charged+1)
}

// remembered is how many reloads a permit may outlive.
const remembered = 16

func (h *history) add(r reload) {
	h.latest = append(h.latest, r)
	if len(h.latest) > remembered {
		h.latest = h.latest[1:]
		h.latest[0].factor = 0 // what was before is worth nothing
	}
}

// now is what the charge of a permit counts today, and from when.
func (h *history) now(p Permit) (at time.Duration, cost int64) {
	at, cost = p.At, p.Cost
	for _, r := range h.latest {
		if p.At >= r.at {
			continue
		}
		if r.moved && at < r.oldest {
			return at, 0
		}
		if r.moved {
			at = r.at
		}
		cost = floor(cost, r.factor)
	}
	return at, cost
}
