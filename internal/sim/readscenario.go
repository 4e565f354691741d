// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"google.golang.org/grpc/codes"
)

// The bounds of what can be asked for.
const (
	mostClients  = 10_000_000
	mostBackends = 100_000
	mostLength   = 24 * time.Hour
	mostRate     = 1e8
	mostBuckets  = 100_000
)

// scenario reads the whole file.
func (r *reader) scenario(f *fields, read func(string) ([]byte, error)) *Scenario {
	defer f.end()
	s := &Scenario{
		Title: f.name("title"),
		About: f.text("about"),
		Seed:  uint64(f.count("seed", 1, 1, 1<<53)),
	}
	s.Recovery = Recovery{Success: 0.99, Window: 250 * time.Millisecond}
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
	for _, in := range f.objects("phases") {
		s.Phases = append(s.Phases, in.phase())
	}
	for _, in := range f.objects("variants") {
		s.Variants = append(s.Variants, in.variant())
	}
	s.Bucket = f.duration("bucket", s.bucket(), time.Millisecond, time.Hour)
	if len(r.problems) == 0 {
		r.check(s, f)
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
		Time:      f.distribution("time"),
		Refuse:    f.code("refuse", codes.ResourceExhausted),
		Abandoned: Abandoned(f.word("abandoned", "SERVE", "DROP")),
		Guard:     f.flag("guard", true),
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
		Connections: f.count("connections", 1, 1, 100_000),
		Attempts:    f.count("attempts", defaultMaxAttempts, 1, 1000),
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
	in := f.inside("calls")
	if in == nil {
		f.wrong("calls", "must say which service is called, with which deadline")
		return fleet
	}
	fleet.Call = in.call()
	if !in.has("deadline") {
		in.wrong("deadline", `must be a time such as "1s": who waits forever says nothing of retries`)
	}
	in.end()
	return fleet
}
