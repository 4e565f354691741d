// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"time"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/testserver"
)

// record is what became of a contender's calls.
type record struct {
	calls    []call
	requests []time.Duration // when each arrived at a server, from the day's start
	twice    int             // orders that the servers carried out more than once
}

// call is one call, as its user saw it.
type call struct {
	at   time.Duration // from the day's start
	took time.Duration
	ok   bool
}

// see takes down what the servers saw.
func (r *record) see(start time.Time, attempts []testserver.Attempt) {
	made := map[string]int{}
	for _, a := range attempts {
		r.requests = append(r.requests, a.Time.Sub(start))
		if a.Method != orders.CreateOrder || !carriedOut(&a) {
			continue
		}
		order := string(a.Request)
		made[order]++
		if made[order] == 2 {
			r.twice++
		}
	}
}
