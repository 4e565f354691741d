// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// phase is a period with one load.
type phase struct {
	kind   sim.Kind
	length time.Duration
	load   float64
}

// drawLoad draws how the load changes: not at all, in a pulse, in steps up and down, or in a train of pulses.
func (d *draft) drawLoad() {
	d.base = tidy(d.even(0.3, 0.88))
	add := func(kind sim.Kind, length time.Duration, load float64) {
		d.phases = append(d.phases, phase{kind, length.Round(100 * time.Millisecond), tidy(load)})
	}
	trouble := d.span(2*time.Second, 15*time.Second)
	shape := d.one(0.42, 0.28, 0.15, 0.15)
	if d.rare {
		trouble *= 3
	}
	high := max(d.log(0.8, 3), d.base)
	add(sim.KindLead, d.slow(d.span(2*time.Second, 6*time.Second)), d.base)
	switch shape {
	case 0:
		if d.hit(0.25) {
			d.base = tidy(d.even(0.65, 1.25))
			d.phases[0].load = d.base
		}
		d.say("load %v", d.base)
		add(sim.KindTrouble, trouble, d.base)
	case 1:
		d.say("load %v, pulse of %.2g", d.base, high)
		add(sim.KindTrouble, trouble, high)
	case 2:
		d.say("load %v, ramp to %.2g", d.base, high)
		const steps = 5
		for i := range steps {
			part := 1 - max(float64(steps/2-i), float64(i-steps/2))/(steps/2+1)
			add(sim.KindTrouble, trouble/steps, d.base+(high-d.base)*part)
		}
	default:
		n := 2 + d.IntN(4)
		d.say("load %v, %d pulses of %.2g", d.base, n, high)
		for i := range n {
			if i > 0 {
				add(sim.KindTrouble, trouble/time.Duration(2*n), d.base)
			}
			add(sim.KindTrouble, trouble/time.Duration(n), high)
		}
	}
	add(sim.KindAfter, d.slow(d.span(4*time.Second, 12*time.Second)), d.base)
}

// slow is longer for clients that make few calls.
func (d *draft) slow(length time.Duration) time.Duration {
	if d.rare {
		return 4 * length
	}
	return length
}

// drawTrouble draws faults and their backends, and builds the phases.
func (d *draft) drawTrouble() {
	var faults []sim.Fault
	sequence := false
	switch d.one(0.36, 0.42, 0.1, 0.12) {
	case 0:
	case 1:
		faults = d.someBackends()
	case 2:
		faults = d.allBackends()
	default:
		sequence = true
	}
	for i, p := range d.phases {
		f := sim.Phase{Name: fmt.Sprintf("%s %d", map[sim.Kind]string{sim.KindLead: "lead", sim.KindTrouble: "trouble", sim.KindAfter: "after"}[p.kind], i), Kind: p.kind, Length: p.length, Load: p.load}
		switch {
		case p.kind != sim.KindTrouble:
		case sequence:
			d.Phases = append(d.Phases, d.drawSequence(f)...)
			sequence = false
			continue
		default:
			f.Faults = faults
		}
		d.Phases = append(d.Phases, f)
	}
}

// someBackends draws the faults of a part of the backends.
func (d *draft) someBackends() []sim.Fault {
	s := d.last()
	f := sim.Fault{Service: s.Name, Code: codes.Unavailable}
	n := 1
	if s.Backends > 1 {
		n = d.count(1, max(s.Backends*2/5, 1))
	}
	for i := range n {
		f.Backends = append(f.Backends, i)
	}
	kind := d.one(0.3, 0.15, 0.15, 0.12, 0.13, 0.15)
	if n == s.Backends && kind < 2 { // of one backend, a part of the requests fails
		kind = 2
	}
	of := fmt.Sprintf("%d of %d backends", n, s.Backends)
	switch kind {
	case 0:
		f.Down = true
		d.say("%s down", of)
	case 1:
		f.Hang = true
		d.say("%s hang", of)
	case 2:
		f.Flaky = tidy(d.even(0.05, 0.6))
		d.say("%s fail %.0f %%", of, 100*f.Flaky)
	case 3:
		f.Slow = &sim.Slow{Part: tidy(d.log(0.01, 0.3)), By: &sim.Distribution{A: neat(time.Duration(float64(s.Time.Mean()) * d.log(5, 50)))}}
		d.say("%s have a slow tail", of)
	case 4:
		f.Slower = tidy(d.log(1.5, 10))
		d.say("%s %.1f times slower", of, f.Slower)
	default:
		left := d.IntN(s.Workers)
		f.Workers = &left
		d.say("%s lose %d of %d workers", of, s.Workers-left, s.Workers)
	}
	return []sim.Fault{f}
}

// allBackends draws the faults of all backends.
func (d *draft) allBackends() []sim.Fault {
	f := sim.Fault{Service: d.last().Name, Code: codes.Unavailable}
	switch d.one(0.4, 0.3, 0.3) {
	case 0:
		f.Flaky = tidy(d.even(0.02, 0.5))
		d.say("%.0f %% of the requests fail", 100*f.Flaky)
	case 1:
		f.Slower = tidy(d.log(1.2, 6))
		d.say("all %.1f times slower", f.Slower)
	default:
		f.Down = true
		d.say("outage")
	}
	return []sim.Fault{f}
}

// drawSequence draws a trouble with a course of its own: a cold start, a rolling deploy, or broken connections.
func (d *draft) drawSequence(of sim.Phase) []sim.Phase {
	s := d.last()
	var list []sim.Phase
	add := func(length time.Duration, faults ...sim.Fault) {
		p := of
		p.Name, p.Length, p.Faults = fmt.Sprintf("%s, %d", of.Name, len(list)+1), max(neat(length), 10*time.Millisecond), faults
		list = append(list, p)
	}
	fault := func(backends ...int) sim.Fault {
		return sim.Fault{Service: s.Name, Backends: backends, Code: codes.Unavailable}
	}
	down := func(f sim.Fault) sim.Fault { f.Down = true; return f }
	slower := func(f sim.Fault, times float64) sim.Fault { f.Slower = tidy(times); return f }
	switch d.one(0.35, 0.4, 0.25) {
	case 0:
		cold := d.log(2, 8)
		d.say("cold start, %.1f times slower", cold)
		add(of.Length/20, down(fault()))
		for _, part := range []float64{1, 0.6, 0.3} {
			add(of.Length/4, slower(fault(), 1+(cold-1)*part))
		}
	case 1:
		n := min(s.Backends, 6)
		cold := d.log(1.2, 5)
		d.say("rolling deploy of %d backends, cold %.1f times slower", n, cold)
		for i := range n {
			step := []sim.Fault{down(fault(i))}
			if i > 0 {
				step = append(step, slower(fault(i-1), cold))
			}
			add(of.Length/time.Duration(n), step...)
		}
	default:
		d.say("connections break")
		for range 2 {
			add(d.span(20*time.Millisecond, 300*time.Millisecond), down(fault()))
			add(of.Length / 2)
		}
	}
	return list
}
