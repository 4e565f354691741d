// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// figure is a figure by which clients are compared.
type figure struct {
	name  string
	print func(result) string
	// better reports whether b is better than a by more than chance and rounding.
	better func(a, b result) bool
	why    func(s storm, ours result) string // stagger gets for being worse
	// equals restricts the comparison to peers whose success is not lower: a client that lets calls fail is faster and sends
	// less.
	equals bool
}

func figures() []figure {
	took := func(name string, of func(result) time.Duration) figure {
		return figure{
			name: name, why: whySlower, equals: true,
			print:  func(r result) string { return millis(of(r)) + " ms" },
			better: func(a, b result) bool { return float64(of(b)) < 0.9*float64(of(a)) && of(a)-of(b) > 5*time.Millisecond },
		}
	}
	return []figure{
		{
			name: "success", why: whyFewer, better: lower,
			print: func(r result) string { return fmt.Sprintf("%.1f %%", 100*r.Success) },
		},
		{
			name: "time to recover", why: whyLater, better: later,
			print: func(r result) string { return r.Recovery.String() + " s" },
		},
		{
			name: "requests per call", why: whyMore, equals: true,
			print:  func(r result) string { return fmt.Sprintf("%.2f", r.PerCall) },
			better: func(a, b result) bool { return b.PerCall < a.PerCall-0.02 },
		},
		{
			name: "peak arrivals", why: whyHigher, equals: true,
			print:  func(r result) string { return fmt.Sprintf("%.1f", r.Peak) },
			better: func(a, b result) bool { return b.Peak < 0.8*a.Peak },
		},
		took("p50", func(r result) time.Duration { return r.P50 }),
		took("p99", func(r result) time.Duration { return r.P99 }),
		took("p999", func(r result) time.Duration { return r.P999 }),
	}
}

// later reports whether a recovered later than b.
func later(a, b result) bool {
	if b.Recovery.State != sim.RecoveryReturned {
		return false
	}
	return a.Recovery.State == sim.RecoveryNever || a.Recovery.Took.Seconds() > b.Recovery.Took.Seconds()+slack
}

// worse is a figure in which peers are better than stagger.
type worse struct {
	storm, figure, is, peers, why string
}

// worse returns the figures in which stagger, with one connection, is worse than its peers, whatever they time out. It
// leaves out figures of clients that a slow machine has spoilt.
func (o *outcome) worse() []worse {
	var list []worse
	for i, c := range o.clients {
		if !c.ours || c.connections != 1 || c.retries != wherePicked || o.results[i].Late > outage.TooLate {
			continue
		}
		for _, f := range figures() {
			var peers []string
			for k, p := range o.clients {
				r := o.results[k]
				if p.ours || p.retries != wherePicked || r.Late > outage.TooLate || f.equals && lower(r, o.results[i]) {
					continue
				}
				if f.better(o.results[i], r) {
					peers = append(peers, p.name+" "+f.print(r))
				}
			}
			if len(peers) > 0 {
				list = append(list, worse{o.storm.Title, f.name, f.print(o.results[i]), strings.Join(peers, ", "), f.why(o.storm, o.results[i])})
			}
		}
	}
	return list
}

// The reasons for which stagger is worse than a peer, by kind of storm.

// lasts reports whether the trouble was longer than the retries of most calls.
func lasts(r result) bool { return r.Success < 0.5 }

const takes = "the attempts that it sends in parallel to slow ones take servers' time from other calls"

func whyFewer(s storm, _ result) string {
	if s.overloads() {
		return takes
	}
	return "its budget ends the retries before the servers are back"
}

func whyLater(s storm, _ result) string {
	if s.overloads() {
		return takes + ", and are still queued when it is over"
	}
	return "retries that still wait when the trouble is over add to the calls"
}

func whyMore(_ storm, ours result) string {
	if lasts(ours) {
		return "its budget allows retries of a tenth of the calls during the whole outage; throttling and breaker end them"
	}
	return "full jitter waits less on average, so more retries arrive during the trouble"
}

func whyHigher(s storm, _ result) string {
	if s.overloads() {
		return takes
	}
	return "full jitter may draw a wait of nearly zero, so some retries arrive at once"
}

func whySlower(s storm, ours result) string {
	switch {
	case s.overloads():
		return takes
	case lasts(ours):
		return "calls that are retried in vain fail later than calls that are not retried"
	case s.attemptTimeout > 0:
		return "it waits out a backoff after the attempt timeout before it sends the next attempt; a hedge is sent at once"
	default:
		return "full jitter may draw several short waits, so some calls need more retries than with waits of at least 80 %"
	}
}
