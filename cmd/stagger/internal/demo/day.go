// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/testserver"
)

// day is what happens to every contender alike.
type day struct {
	fleet  shape
	phases []phase
}

// phase is a part of the day.
type phase struct {
	name   string
	label  string // short, for the chart and the columns of the table; "" for a phase without a column
	length time.Duration
	load   float64 // calls per second as a part of the capacity
	ill    int     // backends, from the first, that answer UNAVAILABLE at once
}

// shape is how a contender's servers are built.
type shape struct {
	backends int
	workers  int           // of each backend
	service  time.Duration // of each request
	queue    int           // requests that may wait at each backend
}

// capacity is in requests per second, of all backends together.
func (s shape) capacity() float64 {
	return float64(s.backends*s.workers) / s.service.Seconds()
}

// Of each client.
const (
	backends = 4
	workers  = 5
)

// newDay is the scripted day, at 200 requests per second of capacity for each worker of a backend.
// The queue of a backend holds a second's work, five times what the clients wait for one attempt.
func newDay(workers int) day {
	const calm, normal = "calm", 0.55
	return day{
		fleet: shape{backends: backends, workers: workers, service: 20 * time.Millisecond, queue: 75 * workers},
		phases: []phase{
			{name: calm, length: 3 * time.Second, load: normal},
			{name: "a blip: every backend fails", label: "blip", length: 150 * time.Millisecond, load: normal, ill: backends},
			{name: calm, length: 1250 * time.Millisecond, load: normal},
			{name: "one backend of four fails", label: "one of four", length: 3 * time.Second, load: normal, ill: 1},
			{name: calm, length: 600 * time.Millisecond, load: normal},
			{name: "a total outage", label: "outage", length: 4 * time.Second, load: normal, ill: backends},
			{name: calm, length: time.Second, load: normal},
			{name: "a pulse of 1.5 times the capacity", label: "pulse", length: 2500 * time.Millisecond, load: 1.5},
			{name: "normal load again", label: "after the pulse", length: 2500 * time.Millisecond, load: normal},
		},
	}
}

// length is that of all phases.
func (d day) length() time.Duration {
	var sum time.Duration
	for _, p := range d.phases {
		sum += p.length
	}
	return sum
}

// span is when a phase begins and ends, from the day's start.
func (d day) span(label string) (from, to time.Duration) {
	for _, p := range d.phases {
		to = from + p.length
		if p.label == label {
			return from, to
		}
		from = to
	}
	return 0, 0
}

// labels are the phases that have a name of their own in the tables.
func (d day) labels() []string {
	var list []string
	for _, p := range d.phases {
		if p.label != "" {
			list = append(list, p.label)
		}
	}
	return list
}

// ill is what a backend that is ill does: it fails at once, without any work.
func ill() testserver.Step { return testserver.Fail(codes.Unavailable, "the backend is down") }
