// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	_ "google.golang.org/grpc/balancer/leastrequest" // the policy least_request_experimental

	"github.com/stagger-go/stagger/balancer"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// embedded has the storms, and stagger's policy file for all of them.
//
//go:embed storms retry.yaml
var embedded embed.FS

// storm is an outage, the same for every client, with stagger's targets.
type storm struct {
	*sim.Scenario

	attemptTimeout time.Duration // of the clients that support it; 0: none
	hedgingDelay   time.Duration // of stagger's policy if that
	process        uint64        // number of the process with these options, from 1
	target         target
	ofMany         target // of stagger in many processes
	elsewhere      target // of stagger with retries elsewhere; none: not played
	atOnce         target // of the same, with the first
	leaf           string // the load balancing policy of all clients, by its name or as a list of configs; "": round_robin
}

// clients returns the clients for which the storm is played.
func (s storm) clients(seed uint64) []client {
	if s.elsewhere == (target{}) {
		return clients(seed)
	}
	return elsewhereClients(seed)
}

// targetOf returns the target of a client.
func (s storm) targetOf(c client) target {
	switch {
	case c.many():
		return s.ofMany
	case c.retries == whereElsewhere:
		return s.elsewhere
	case c.retries == whereElsewhereAtOnce:
		return s.atOnce
	default:
		return s.target
	}
}

// balancing returns the storm's load balancing for a service config, on its own or inside package balancer's.
func (s storm) balancing(elsewhere bool) string {
	leaf := fmt.Sprintf(`[{%q: {}}]`, cmp.Or(s.leaf, "round_robin"))
	if strings.HasPrefix(s.leaf, "[") {
		leaf = s.leaf
	}
	if elsewhere {
		return fmt.Sprintf(`[{%q: {"childPolicy": %s}}]`, balancer.Name, leaf)
	}
	return leaf
}

// storms returns all storms in order. Some have no target: stagger is only compared with its peers.
func storms() ([]storm, error) {
	overload := target{recovery: 1.5, share: 0.9}
	var list []storm
	for _, s := range []struct {
		file   string
		target target
	}{
		{"blip", target{}},
		{"pulse", overload},
		{"patient-pulse", overload},
		{"random-failures", target{success: 0.999}},
		{oneFails, target{success: 0.995}},
		{"one-hangs", target{success: 0.99}},
		{"outage", target{perCall: 1.12}},
		{"slow-tail", target{}},
		{"chain-outage", target{perCall: 1.12}},
		{"chain-pulse", target{recovery: 2, share: 0.9}}, // three hops send attempts in parallel with
	} {
		read, err := load("storms/" + s.file + ".yaml")
		if err != nil {
			return nil, err
		}
		read.target = s.target
		list = append(list, read)
	}
	return list, nil
}

// elsewhereStorms are those in which some backends are worse than others, to measure the benefit of retries elsewhere.
func elsewhereStorms() ([]storm, error) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var list []storm
	for _, s := range []struct {
		file, title, leaf         string
		target, elsewhere, atOnce target
	}{
		{
			oneFails, "one fails, elsewhere", "",
			target{success: 0.995},
			target{success: 0.9995, p99: ms(125), p999: ms(140)},
			target{success: 0.9995, p99: ms(75), p999: ms(90)}, // from 100 connections 43 to 61 ms and 52 to 75, by the run; from one 29 and 32
		},
		{
			"one-hangs", "one hangs, elsewhere", "",
			target{success: 0.99},
			target{success: 0.9995, p99: ms(225), p999: ms(240)},
			target{success: 0.9995, p99: ms(145), p999: ms(160)},
		},
		{oneFails, "one fails, least request", leastRequest, target{}, target{success: 0.999}, target{success: 0.999}},
		{"two-fail", "two fail", "", target{}, target{more: true}, target{}},
	} {
		read, err := load("storms/" + s.file + ".yaml")
		if err != nil {
			return nil, err
		}
		read.Title, read.leaf, read.target, read.elsewhere, read.atOnce = s.title, s.leaf, s.target, s.elsewhere, s.atOnce
		list = append(list, read)
	}
	return list, nil
}

const (
	oneFails     = "one-fails" // played
	leastRequest = "least_request_experimental"
)

// load reads a storm. The method of its users' calls has a policy with its attempt timeout.
func load(file string) (storm, error) {
	data, err := embedded.ReadFile(file)
	if err != nil {
		return storm{}, err
	}
	s, err := sim.Parse(file, data, func(name string) ([]byte, error) { return embedded.ReadFile(path.Join(path.Dir(file), name)) })
	if err != nil {
		return storm{}, err
	}
	call := &s.Fleets[0].Calls[0]
	p := s.Policies[call.Policy].Lookup(call.Method)
	if p == nil {
		return storm{}, fmt.Errorf("%s: no policy for %s", file, call.Method)
	}
	read := storm{Scenario: s, attemptTimeout: p.PerAttemptTimeout()}
	if h := p.Hedge(); h != nil {
		read.hedgingDelay = h.Delay
	}
	return read, nil
}

// choose returns the storms whose names match the pattern.
func choose(all []storm, pattern string) ([]storm, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-storms: %w", err)
	}
	some := slices.DeleteFunc(slices.Clone(all), func(s storm) bool { return !names.MatchString(s.Title) })
	if len(some) == 0 {
		return nil, fmt.Errorf("-storms %q: matches no storm", pattern)
	}
	return some, nil
}

// last returns the service with the trouble; in a chain, the others call it.
func (s storm) last() *sim.Service { return &s.Services[len(s.Services)-1] }

// chain reports whether a call reaches several services.
func (s storm) chain() bool { return len(s.Services) > 1 }

func (s storm) deadline() time.Duration { return s.Fleets[0].Calls[0].Deadline }

// overloads reports whether there are more calls than the servers can serve.
func (s storm) overloads() bool {
	return slices.ContainsFunc(s.Phases, func(p sim.Phase) bool { return p.Load > 1 })
}

// terms describes the settings of a storm's calls.
func (s storm) terms() string {
	text := "No attempt timeouts"
	switch {
	case s.attemptTimeout > 0:
		text = fmt.Sprintf("Attempt timeouts of %v", s.attemptTimeout)
	case s.hedgingDelay > 0:
		text = fmt.Sprintf("Hedges after %v", s.hedgingDelay)
	}
	if s.chain() {
		text += fmt.Sprintf(", %d services, the last of which serves %.0f requests/s, the others twice as many", len(s.Services), s.last().Capacity())
	}
	return fmt.Sprintf("%s; a call ends after %v.", text, s.deadline())
}
