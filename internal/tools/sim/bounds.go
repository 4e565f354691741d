// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"math"

	"github.com/stagger-go/stagger/internal/document"
)

// Limits on a scenario whose numbers are valid one by one. A connection takes 4 bytes, a process some hundred, a call in
// flight a thousand, a request 200, a bucket 24 for each fleet and service.
const (
	mostProcesses   = 20_000_000 // each counts once for each call that it makes
	mostConnections = 100_000_000
	mostServers     = 1_000_000     // backends of all services
	mostEntered     = 100_000_000   // backends, times their phases and faults
	mostCalls       = 1_000_000_000 // of fleets and services
	mostInFlight    = 10_000_000    // calls of fleets
	mostRequests    = 100_000_000   // at a time, at worst
	mostCounts      = 20_000_000    // buckets of all fleets and services in all variants, and the parts of recovery's windows
)

// excess is a limit that is exceeded, and the field to blame.
type excess struct {
	field   string
	message string
}

func tooMany(field string, n, most float64, message string) *excess {
	if n <= most {
		return nil
	}
	return &excess{field, fmt.Sprintf("%s, %.4g; must be at most %.4g", message, n, most)}
}

// excess returns the first limit that a variant of the scenario exceeds, or nil. clients is the field with the number of
// clients for each fleet, "" for the fleets' own.
func (s *Scenario) excess(v *Variant, clients string) *excess {
	b := bounds{Scenario: s, variant: v, fan: map[string]float64{}}
	return cmp.Or(b.inTime(), b.servers(), b.links(clients), b.boundLoad())
}

type bounds struct {
	*Scenario

	variant  *Variant
	fan      map[string]float64 // most requests that one at a service causes, itself included; by the service's name
	plain    bool               // without retries
	requests float64            // of all fleets, at most
}

// inTime limits what is counted over time.
func (s *Scenario) inTime() *excess {
	played := float64(max(len(s.Variants), 1))
	buckets := float64(s.Length()/max(s.Bucket, 1)) * float64(len(s.Fleets)+len(s.Services)) * played
	windows := float64(s.Length()-s.TroubleEnd()) / float64(max(s.Recovery.Window/recoveryParts, 1)) * float64(len(s.Fleets)) * played
	return cmp.Or(
		tooMany("bucket", buckets, mostCounts, "makes, with the length of all phases, too many buckets of all fleets and services in all variants"),
		tooMany("recovery.window", windows, mostCounts, "makes, with the length of the phases after the trouble, too many windows of all fleets in all variants"),
	)
}

// servers limits the backends.
func (s *Scenario) servers() *excess {
	backends := 0.0
	for i := range s.Services {
		backends += float64(s.Services[i].Backends)
		at := document.Item("services", i) + ".backends"
		if e := tooMany(at, backends, mostServers, "makes too many backends of all services"); e != nil {
			return e
		}
	}
	faults := 0.0
	for i := range s.Phases {
		faults += float64(1 + len(s.Phases[i].Faults))
	}
	return tooMany("phases", backends*faults, mostEntered, "and their faults, times all backends, are too many")
}

// links limits processes and their connections.
func (b *bounds) links(clients string) *excess {
	var processes, connections float64
	for _, c := range b.calls() {
		field, n := c.path+".connections", cmp.Or(c.Clients, c.processes)
		if c.fleet {
			field, n = cmp.Or(clients, c.maker+".clients"), cmp.Or(b.variant.Clients, max(c.processes, 1))
		}
		processes += float64(n)
		connections += float64(n) * float64(c.connections())
		if e := cmp.Or(
			tooMany(field, processes, mostProcesses, "makes too many processes, counted for each call that they make"),
			tooMany(field, connections, mostConnections, "makes, with the connections of each, too many connections"),
		); e != nil {
			return e
		}
	}
	return nil
}

// boundLoad limits calls and waiting requests.
func (b *bounds) boundLoad() *excess {
	var calls, inFlight, requests float64
	for i := range b.Fleets {
		f := &b.Fleets[i]
		all, peak := b.callsOf(f)
		for k := range f.Calls {
			c := &f.Calls[k]
			part := c.share() / f.shares()
			flying := all
			switch {
			case f.Think != nil:
				flying = min(all, peak)
			case c.Deadline > 0:
				flying = min(all, peak*c.Deadline.Seconds())
			}
			flying *= part
			inFlight += flying
			calls += all * part * b.plainly().below(f.Name, c)
			worst := b.below(f.Name, c)
			requests += flying * worst
			b.requests += all * part * worst
		}
		field := document.Item("fleets", i) + ".rate"
		if f.Think != nil {
			field = document.Item("fleets", i) + ".think"
		}
		if e := cmp.Or(
			tooMany(field, calls, mostCalls, "makes, with loads, lengths and the calls of services, too many calls"),
			tooMany(field, inFlight, mostInFlight, "makes, with loads and deadlines, too many calls at a time"),
			tooMany(field, requests, mostRequests, "makes, with loads, deadlines and retries at each service, too many requests at a time"),
		); e != nil {
			return e
		}
	}
	waiting := 0.0
	for i := range b.Services {
		waiting += float64(b.Services[i].Backends) * float64(b.Services[i].Queue)
		at := document.Item("services", i) + ".queue"
		if e := tooMany(at, min(waiting, b.requests), mostRequests, "makes, with all backends, too many requests that wait"); e != nil {
			return e
		}
	}
	return nil
}

// callsOf returns how many calls a fleet makes in all, and at most in a second or, if it thinks, at a time.
func (b *bounds) callsOf(f *Fleet) (all, peak float64) {
	if f.Think != nil {
		clients := float64(cmp.Or(b.variant.Clients, f.Clients, 1))
		return clients * b.Length().Seconds() / max(f.Think.Mean().Seconds(), 1e-9), clients
	}
	for i := range b.Phases {
		p := &b.Phases[i]
		to := p.Load
		if p.LoadTo != nil {
			to = *p.LoadTo
		}
		all += f.Rate * (p.Load + to) / 2 * p.Length.Seconds()
		peak = max(peak, f.Rate*max(p.Load, to))
	}
	return all, peak
}

// plainly returns the same bounds without retries.
func (b *bounds) plainly() *bounds {
	return &bounds{Scenario: b.Scenario, variant: b.variant, fan: map[string]float64{}, plain: true}
}

// below returns the most requests that a call causes.
func (b *bounds) below(from string, c *Call) float64 {
	attempts := 1
	if !b.plain {
		attempts = b.attempts(from, c)
	}
	if fan, ok := b.fan[c.Service]; ok {
		return float64(attempts) * fan
	}
	b.fan[c.Service] = math.Inf(1) // circular calls never end
	fan := 1.0
	if s := b.service(c.Service); s != nil {
		for k := range s.Calls {
			fan += b.below(s.Name, &s.Calls[k])
		}
	}
	b.fan[c.Service] = fan
	return float64(attempts) * fan
}

// attempts returns the most attempts of a call.
func (b *bounds) attempts(from string, c *Call) int {
	set, err := b.setOf(b.variant, b.variant.policyOf(from, c.Policy))
	if err != nil || set == nil {
		return 1
	}
	p := set.Lookup(b.variant.methodOf(from, c.Method))
	if p == nil {
		return 1
	}
	return min(p.MaxAttempts(), c.maxAttempts(set))
}
