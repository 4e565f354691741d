// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// A pulse in which a client without a budget loses much, with many irrelevant details.
const trimmed = `
title: trimmed
policies:
  4 attempts:
    methodConfig:
      - name: [{service: search.v1.shop, method: Get}, {service: search.v1.front, method: Get}]
        retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, RESOURCE_EXHAUSTED],
          perAttemptTimeout: 0.3s, budget: NONE}
services:
  - {name: front, backends: 3, workers: 20, time: 2ms, queue: 1000, calls: [{service: shop, method: /search.v1.shop/Get, policy: 4 attempts}]}
  - {name: shop, backends: 3, workers: 3, time: {lognormal: {median: 60ms, p99: 240ms}}, queue: 61}
fleets:
  - {name: users, clients: 20, rate: 113.31, calls: {service: front, method: /search.v1.front/Get, policy: 4 attempts, deadline: 1.03s, delay: 1ms, connections: 2}}
phases:
  - {name: lead, kind: LEAD, length: 2.1s, load: 0.6}
  - {name: pulse, length: 3.3s, load: 1.93}
  - {name: fault, length: 1.2s, load: 0.6, faults: [{service: shop, backends: [0], flaky: 0.02}]}
  - {name: after, kind: AFTER, length: 2.7s, load: 0.6}
`

func TestWriteWorst(t *testing.T) {
	t.Parallel()
	s := must.Get(sim.Parse("trimmed.yaml", []byte(trimmed), nil))(t)
	d := &drawn{Scenario: s}
	before := must.Get(lossOf(t.Context(), d.with([]string{noRetries, "4 attempts"})))(t)
	bad := &judged{Seed: 7, Index: 3, Words: "trimmed", drawn: d, Players: map[string][]outcome{noRetries: successes(0.9), "4 attempts": successes(0.1)}}
	good := &judged{Index: 4, Players: map[string][]outcome{noRetries: successes(0.9), "4 attempts": successes(0.9)}}
	folder := filepath.Join(t.TempDir(), "worst")
	var out strings.Builder
	must.Do(t, writeWorst(t.Context(), &out, folder, []*judged{good, bad}, "4 attempts", 10))
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 || files[0].Name() != "7-3.yaml" {
		t.Fatalf("%v, %v; want 7-3.yaml alone", files, err)
	}
	got := must.Get(sim.Load(filepath.Join(folder, "7-3.yaml")))(t)
	if loss, err := lossOf(t.Context(), got); err != nil || loss < max(before/2, leastLoss) {
		t.Errorf("a loss of %.3f has shrunk to %.3f, %v; want half of it at least", before, loss, err)
	}
	if len(got.Services) != 1 || len(got.Phases) > 2 || got.Fleets[0].Clients > 10 || got.Fleets[0].Calls[0].Delay != nil || got.Services[0].Backends != 1 {
		t.Errorf("%d services, %d phases, %d clients, delay %v, %d backends; want fewer", len(got.Services), len(got.Phases), got.Fleets[0].Clients,
			got.Fleets[0].Calls[0].Delay, got.Services[0].Backends)
	}
	for i := range got.Phases {
		if len(got.Phases[i].Faults) > 0 {
			t.Errorf("phase %q has a fault; want none, since the pulse does it", got.Phases[i].Name)
		}
	}
	if d.Scenario.Fleets[0].Clients != 20 || len(d.Scenario.Services) != 2 {
		t.Error("what was drawn has changed")
	}
}
