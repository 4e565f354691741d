// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

// How far back a rate looks, in parts that are forgotten one by one.
const (
	window = 3 * time.Second
	parts  = 6
	part   = window / parts
)

// rate is how many answers there are in a second. The zero value has seen none.
type rate struct {
	counts  [parts]int
	current int // the place of the newest part
	sum     int
	ends    time.Duration // the newest part
	since   time.Duration // the counts are of the time from here on
}

// add counts an answer.
func (r *rate) add(now time.Duration) {
	r.advance(now)
	r.counts[r.current]++
	r.sum++
}

// perSecond is the rate. Where the answers have just begun, it is that since they did.
func (r *rate) perSecond(now time.Duration) float64 {
	r.advance(now)
	return float64(r.sum) / max(now-r.since, part).Seconds()
}

// advance forgets what is too old. After a pause, the rate begins anew.
func (r *rate) advance(now time.Duration) {
	if r.sum == 0 || now-r.ends >= window {
		*r = rate{ends: now + part, since: now}
		return
	}
	for ; now >= r.ends; r.ends += part {
		r.current = (r.current + 1) % parts
		r.sum -= r.counts[r.current]
		r.counts[r.current] = 0
		r.since = max(r.since, r.ends+part-window)
	}
}
