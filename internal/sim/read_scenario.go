// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
)

// The bounds of what can be asked for.
const (
	mostClients  = 10_000_000
	mostBackends = 100_000
	mostLength   = 24 * time.Hour
	mostRate     = 1e8
	mostBuckets  = 100_000
	mostTimes    = 1e6 // of a time or a rate
	mostPhases   = 10_000
	mostVariants = 100
	mostPolicies = 100
)

// scenario reads the whole file.
func (r *reader) scenario(f *fields, read func(string) ([]byte, error)) *Scenario {
	defer f.end()
	s := &Scenario{
		Title: f.name("title"),
		About: f.text("about"),
		Seed:  uint64(f.count("seed", 1, 1, 1<<53)),
	}
	s.Recovery = defaultRecovery
	if in := f.inside("recovery"); in != nil {
		s.Recovery.Success = in.number("success", s.Recovery.Success, 1, true)
		s.Recovery.Window = in.duration("window", s.Recovery.Window, 25*time.Millisecond, time.Hour)
		in.end()
	}
	s.Policies = r.policies(f.inside("policies"), read)
	for _, in := range f.objects("services") {
		s.Services = append(s.Services, in.service())
	}
	for _, in := range f.objects("fleets") {
		s.Fleets = append(s.Fleets, in.fleet())
	}
	s.Phases, r.phasePaths = f.phases()
	for _, in := range f.objects("variants") {
		s.Variants = append(s.Variants, in.variant())
	}
	s.Bucket = f.duration("bucket", s.bucket(), time.Millisecond, time.Hour)
	if r.ErrorCount() == 0 {
		r.check(s)
	}
	return s
}

// bucket is what a file gets that names none: about two hundred buckets, of whole tenths of a second.
func (s *Scenario) bucket() time.Duration {
	return max((s.Length() / 200).Round(100*time.Millisecond), 200*time.Millisecond)
}

func (f *fields) service() Service {
	defer f.end()
	s := Service{
		Name:      f.name("name"),
		Backends:  f.count("backends", 1, 1, mostBackends),
		Workers:   f.count("workers", 1, 1, 1_000_000),
		Queue:     f.count("queue", 0, 0, 100_000_000),
		Order:     Order(f.word("order", "FIFO", "LIFO")),
		Time:      f.distribution("time"),
		Refuse:    f.code("refuse", codes.ResourceExhausted),
		Abandoned: Abandoned(f.word("abandoned", "SERVE", "DROP")),
		Guard:     f.flag("guard", true),
		Reports:   f.flag("reportsUtilization", false),
	}
	if s.Time == nil || s.Time.Mean() <= 0 {
		f.wrong("time", "must be how long a worker needs for a request, more than 0s on average")
	}
	for _, in := range f.objects("calls") {
		c := in.call()
		c.Clients = in.count("clients", 0, 1, mostBackends)
		s.Calls = append(s.Calls, c)
		in.end()
	}
	return s
}

func (f *fields) call() Call {
	return Call{
		Service:     f.name("service"),
		Method:      f.text("method"),
		Policy:      f.text("policy"),
		Deadline:    f.duration("deadline", 0, time.Millisecond, time.Hour),
		Work:        f.number("work", 1, mostTimes, true),
		Connections: f.count("connections", 1, 1, 100_000),
		Attempts:    f.count("attempts", 0, 1, 1000),
		Delay:       f.distribution("delay"),
		Loss:        f.number("loss", 0, 1, false),
	}
}

func (f *fields) fleet() Fleet {
	defer f.end()
	fleet := Fleet{
		Name:    f.name("name"),
		Clients: f.count("clients", 1, 1, mostClients),
		Rate:    f.number("rate", 0, mostRate, true),
		Think:   f.distribution("think"),
	}
	switch {
	case f.has("rate") == f.has("think"):
		f.wrong("rate", "must be the calls per second of all clients together; or think, how long each waits between its calls, and not both")
	case f.has("think") && (fleet.Think == nil || fleet.Think.Mean() <= 0):
		f.wrong("think", "must be more than 0s on average")
	}
	for _, in := range f.oneOrMore("calls") {
		c := in.call()
		c.Share = in.number("share", 1, 1e6, true)
		fleet.Calls = append(fleet.Calls, c)
		if !in.has("deadline") {
			in.wrong("deadline", `must be a time such as "1s": who waits forever says nothing of retries`)
		}
		in.end()
	}
	if len(fleet.Calls) == 0 {
		f.wrong("calls", "must say which service is called, with which deadline")
	}
	return fleet
}

func (f *fields) variant() Variant {
	defer f.end()
	v := Variant{
		Name:    f.name("name"),
		All:     f.text("policy"),
		Clients: f.count("clients", 0, 1, mostClients),
	}
	if in := f.inside("policies"); in != nil {
		v.Policies = map[string]string{}
		for _, name := range in.keys() {
			v.Policies[name] = in.text(name)
		}
	}
	if n := f.value("set", document.Object, "keys of a policy's methodConfig entries, such as {admission: REFUSE}"); n != nil {
		if text, ok := n.JSON(f.Report, f.under("set")); ok {
			v.Set = string(text)
		}
	}
	if f.has("guard") {
		v.Guard = new(f.flag("guard", true))
	}
	v.Blind = f.flag("blind", false)
	return v
}
