// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

// In the sets of lost help, the servers have room for all calls, and a fault is one that the policy could mend.
func TestDrawHelp(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	keys := []string{
		"one is down", "one hangs", "one is slow", "one loses", "restarts in turn", "one is cold", "blips", "random failures", "constant times",
		"σ 0.4", "a cache", "heavy-tailed", "times the work", "NOT_FOUND (at once: true)", "NOT_FOUND (at once: false)", "old clients",
		"front", "orders", "hedges at p95", "attempt timeout", "retries", "elsewhere",
	}
	for i := range 120 {
		s := testkit.Must(draw(t.Context(), newChance(help, 7, i, nil), playersOf(help, allPlayers)))(t)
		for _, service := range s.Services {
			var rate float64
			for _, c := range s.Fleets[0].Calls { // later services have as many requests
				rate += s.Fleets[0].Rate * c.Work * c.Share / shares(s.Fleets[0].Calls)
			}
			working := float64((service.Backends - 1) * service.Workers)
			if load := rate * service.Time.Mean().Seconds() / working; load > 0.8 {
				t.Errorf("scenario %d: %s has a load of %.2f: %s", i, service.Name, load, s.About)
			}
			if service.Backends < 2 || service.Backends > 10 {
				t.Errorf("scenario %d: %d backends", i, service.Backends)
			}
		}
		if n := s.Fleets[0].Clients; n < 1 || n > 300 {
			t.Errorf("scenario %d: %d clients", i, n)
		}
		var calls float64
		for _, p := range s.Phases {
			calls += p.Load * p.Length.Seconds() * s.Fleets[0].Rate
		}
		if calls < 200 || calls > 12_000 {
			t.Errorf("scenario %d: %.0f calls: %s", i, calls, s.About)
		}
		if !slices.Contains(rows(true)[:4], s.kind) {
			t.Errorf("scenario %d: kind %q", i, s.kind)
		}
		if s.kind != rowBlips { // also a fault
			seen[s.kind]++
		}
		for _, key := range keys {
			if strings.Contains(s.About, key) {
				seen[key]++
			}
		}
		if strings.Contains(s.About, "retries") && (strings.Contains(s.About, "hangs") || strings.Contains(s.About, "one is slow")) {
			t.Errorf("scenario %d: retries after failures mend no such fault: %s", i, s.About)
		}
	}
	for _, key := range append(keys, rows(true)...) {
		if seen[key] == 0 && key != rowOldHelp {
			t.Errorf("%s is never drawn", key)
		}
	}
}

func shares(calls []sim.Call) (sum float64) {
	for _, c := range calls {
		sum += c.Share
	}
	return sum
}

// Lost help is the same on any number of processors, whoever else plays, and the one without any retries loses more than the one
// without a budget.
func TestSearchHelp(t *testing.T) {
	t.Parallel()
	list := testkit.Must(search(t.Context(), help, []uint64{3, 4}, 12, []string{defaultPlayer}, func(float64) {}))(t)
	none, plain := sumHelp(list, noRetries), sumHelp(list, unbound)
	if none.mean < plain.mean+0.03 || none.perCall > plain.perCall {
		t.Errorf("no retries %+v, no budget %+v", none, plain)
	}
	again := testkit.Must(search(t.Context(), help, []uint64{4}, 2, nil, func(float64) {}))(t)
	for i, j := range again {
		delete(list[12+i].Players, defaultPlayer)
		if !reflect.DeepEqual(j, list[12+i]) {
			t.Errorf("played again: %+v; want %+v", j, list[12+i])
		}
	}
}
