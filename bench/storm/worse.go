// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// figure is one of those that clients are compared by.
type figure struct {
	name  string
	print func(result) string
	// better reports whether b is better than a by more than chance and rounding.
	better func(a, b result) bool
	why    func(s storm, ours result) string // stagger gets for being worse
	// equals says that only peers are compared whose success is not lower: a client that lets calls fail
	// is quicker and sends less.
	equals bool
}

func figures() []figure {
	took := func(name string, of func(result) time.Duration) figure {
		return figure{
			name: name, why: whySlower, equals: true,
			print:  func(r result) string { return millis(of(r)) + " ms" },
			better: func(a, b result) bool { return float64(of(b)) < 0.9*float64(of(a)) && of(a)-of(b) > 5*ms },
		}
	}
	return []figure{
		{
			name: "success", why: whyFewer, better: lower,
			print: func(r result) string { return fmt.Sprintf("%.1f %%", 100*r.success) },
		},
		{
			name: "time to recover", why: whyLater, better: later,
			print: func(r result) string { return r.recovery.String() + " s" },
		},
		{
			name: "requests per call", why: whyMore, equals: true,
			print:  func(r result) string { return fmt.Sprintf("%.2f", r.perCall) },
			better: func(a, b result) bool { return b.perCall < a.perCall-0.02 },
		},
		{
			name: "peak arrivals", why: whyHigher, equals: true,
			print:  func(r result) string { return fmt.Sprintf("%.1f", r.peak) },
			better: func(a, b result) bool { return b.peak < 0.8*a.peak },
		},
		took("p50", func(r result) time.Duration { return r.p50 }),
		took("p99", func(r result) time.Duration { return r.p99 }),
		took("p999", func(r result) time.Duration { return r.p999 }),
	}
}

// later reports whether a recovered later than b.
func later(a, b result) bool {
	if b.recovery.state != returned {
		return false
	}
	return a.recovery.state == never || a.recovery.took.Seconds() > b.recovery.took.Seconds()+slack
}

// worse is a figure in which peers do better than stagger.
type worse struct {
	storm, figure, is, peers, why string
}

// worse lists what stagger, from one connection, does worse than its peers, whatever they time out.
// Figures of clients that a slow machine has spoilt are left out.
func (t *tally) worse() []worse {
	var list []worse
	for i, c := range t.who {
		if !c.ours || c.connections != 1 || t.results[i].late > tooLate {
			continue
		}
		for _, f := range figures() {
			var peers []string
			for k, p := range t.who {
				r := t.results[k]
				if p.ours || r.late > tooLate || f.equals && lower(r, t.results[i]) {
					continue
				}
				if f.better(t.results[i], r) {
					peers = append(peers, p.name+" "+f.print(r))
				}
			}
			if len(peers) > 0 {
				list = append(list, worse{t.storm.name, f.name, f.print(t.results[i]), strings.Join(peers, ", "), f.why(t.storm, t.results[i])})
			}
		}
	}
	return list
}
