// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/failsafe-go/failsafe-go/failsafegrpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/policy"
)

// admission is the name of stagger with admission: REFUSE on every entry.
const admission = "admission"

// refusals count the calls that admission has refused, by client.
type refusals map[string]*atomic.Int64

// admissionClients are the clients to compare admission with: no retries, stagger without it, and failsafe-go's limiter and
// throttler, which do not retry here.
func admissionClients(seed uint64) ([]client, refusals) {
	list := []client{{name: noRetriesName, connections: 1, options: noRetries}}
	withOut := ours("stagger", wherePicked, seed)[0]
	withOut.ours = false // the grid has its targets
	list = append(list, withOut)
	counts := refusals{}
	add := func(name string, c client) {
		if c.ours {
			refused := new(atomic.Int64)
			counts[name] = refused
			c.options = func(s storm) (outage.Options, error) { return admitting(s, seed, refused) }
		}
		c.name = name
		list = append(list, c)
	}
	for _, c := range []client{
		{name: admission, ours: true, onSlow: onSlowTimeout},
		{name: "limiter", options: limiter},
		{name: "throttler", options: throttler},
	} {
		c.connections = 1
		add(c.name, c)
		if c.ours {
			c.connections = 10
			add(c.name+", 10 conns", c)
			c.connections = 100
			add(c.name+", 100 conns", c)
			c.connections, c.processes = 1, 10
			add(c.name+", 10 processes", c)
		}
		c.connections, c.processes = 1, 100
		add(c.name+", 100 processes", c)
	}
	return list, counts
}

// peer reports whether it is failsafe-go's limiter or throttler.
func (c client) peer() bool {
	return strings.HasPrefix(c.name, "limiter") || strings.HasPrefix(c.name, "throttler")
}

// limiter is failsafe-go's adaptive limiter with its defaults, which limits running calls by their latency.
func limiter(storm) (outage.Options, error) {
	return outage.Options{Dial: peers.Intercepted(failsafegrpc.NewUnaryClientInterceptor[any](adaptivelimiter.NewWithDefaults[any]()))}, nil
}

// throttler is failsafe-go's adaptive throttler with its defaults, which refuses more when more calls fail.
func throttler(storm) (outage.Options, error) {
	return outage.Options{Dial: peers.Intercepted(failsafegrpc.NewUnaryClientInterceptor[any](adaptivethrottler.NewWithDefaults[any]()))}, nil
}

// admittingPolicies are stagger's, with admission on every entry.
func admittingPolicies(more ...string) (*policy.Set, error) {
	data, err := embedded.ReadFile(policyFile)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(data), "  - name:", "  - admission: REFUSE\n    name:")
	return policy.Parse(policyFile, []byte(text+"\n"+strings.Join(more, "\n")))
}

func admitting(s storm, seed uint64, refused *atomic.Int64, more ...string) (outage.Options, error) {
	set, err := admittingPolicies(more...)
	if err != nil {
		return outage.Options{}, err
	}
	retrier, err := interceptor.New(set, inside.Random(seeded(seed, s.process)).(interceptor.Option), interceptor.WithObserver(interceptor.Observer{
		Call: func(_ context.Context, e interceptor.Event) {
			if e.Reason == policy.ReasonOverloaded && e.Attempt == 0 {
				refused.Add(1)
			}
		},
	}))
	if err != nil {
		return outage.Options{}, err
	}
	return outage.Options{Dial: retrier.DialOptions(), Server: retrier.ServerOptions()}, nil
}

// admissionStorms are the storms with the targets of admission. Without an overload, it should refuse almost nothing.
func admissionStorms(t *testing.T) (list []storm, calm []string) {
	t.Helper()
	succeeds := func(success float64) target { return target{success: success} }
	for _, s := range []struct {
		file           string
		overload       bool
		target, ofMany target
	}{
		{"pulse", true, succeeds(0.85), succeeds(0.85)}, // 92.5 % from one process; of four plays over 100 connections, one came to 85.7 %
		{"pulse-10s", true, succeeds(0.75), succeeds(0.72)},
		{"pulse-60s", true, succeeds(0.66), succeeds(0.66)},
		{"on-and-off", true, target{share: 1}, target{share: 1}},
		{"strong-pulse", true, target{share: 0.98}, target{}},
		{"half-the-workers", true, target{}, target{}},
		{"pulse-one-down", true, target{}, target{}},
		{"patient-pulse", true, target{share: 1}, target{share: 1}},
		{"chain-pulse", true, target{share: 1}, target{}},
		{"blip", false, target{}, target{}},
		{"random-failures", false, succeeds(0.999), succeeds(0.999)},
		{oneFails, false, succeeds(0.995), succeeds(0.995)},
		{"one-hangs", false, succeeds(0.99), target{}},
		{"one-hangs-busy", false, succeeds(0.99), target{}},
		{"outage", false, target{perCall: 1.12}, target{perCall: floors(100, 550)}},
		{"slow-tail", false, succeeds(0.999), succeeds(0.999)},
		{"all-slow", false, succeeds(0.999), succeeds(0.999)},
	} {
		read := must.Get(load("storms/" + s.file + ".yaml"))(t)
		read.target, read.ofMany = s.target, s.ofMany
		if !s.overload {
			calm = append(calm, read.Title)
		}
		read.Scenario = withAdmission(t, read.Scenario)
		list = append(list, read)
	}
	return list, calm
}

// withAdmission adds the simulator's results.
func withAdmission(t *testing.T, s *sim.Scenario) *sim.Scenario {
	t.Helper()
	set, err := admittingPolicies()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.With(admission, set, ""); err != nil {
		t.Fatal(err)
	}
	last := s.Variants[len(s.Variants)-1]
	most := []int{10, 100}
	if s.Title == "strong pulse" {
		most = most[:1] // from a hundred processes, chance decides which of them learn in time
	}
	for _, processes := range most {
		more := last
		more.Name, more.Clients = fmt.Sprintf("%s, %d processes", admission, processes), processes
		s.Variants = append(s.Variants, more)
	}
	return s
}

func TestAdmissionIsOnEveryEntry(t *testing.T) {
	t.Parallel()
	set := must.Get(admittingPolicies())(t)
	if slices.ContainsFunc(set.Policies(), func(p *policy.Policy) bool { return p.Spec().Admission <= policy.AdmissionNone }) || len(set.Policies()) < 4 {
		t.Error("an entry has no admission")
	}
}
