// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/outage"
)

// result is what the tables say of a client.
type result struct {
	outage.Result

	name      string
	phases    map[string]float64 // success of the calls that began in a phase, by its label
	perOutage float64            // requests for each call in the total outage
	twice     int                // orders that the servers carried out more than once
}

func newResult(d day, name string, r *outage.Record) result {
	out := result{Result: r.Measure(), name: name, phases: map[string]float64{}, twice: twice(r.Requests[0])}
	for _, label := range d.labels() {
		part := r.Part(d.span(label))
		out.phases[label] = part.Success()
		if label == "outage" {
			out.perOutage = part.PerCall()
		}
	}
	return out
}

// twice counts the orders that the servers carried out more than once.
func twice(requests []outage.Request) int {
	n, made := 0, map[string]int{}
	for i := range requests {
		r := &requests[i]
		if r.Method != orders.CreateOrder || !carriedOut(r) {
			continue
		}
		order := string(r.Request)
		made[order]++
		if made[order] == 2 {
			n++
		}
	}
	return n
}

// carriedOut reports whether the server did the work of a request. One whose client went away
// kept its place in the queue, and was served all the same; one that never came had nothing to be done.
func carriedOut(r *outage.Request) bool {
	return r.Received > 0 && (r.Code == codes.OK || r.Cancelled)
}
