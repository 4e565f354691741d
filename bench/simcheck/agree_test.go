// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Under the race detector a storm takes fifteen times as long, and says nothing else.

package simcheck

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stagger-go/stagger/internal/sim"
)

// What the simulator may be off.
const (
	points = 0.03 // of success
	part   = 0.05 // of requests per call
)

// scenarios are the storms.
func scenarios(t *testing.T) map[string]*sim.Scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, error %v", len(files), err)
	}
	all := map[string]*sim.Scenario{}
	for _, f := range files {
		s, err := sim.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		all[s.Title] = s
	}
	return all
}

func simulate(t *testing.T, s *sim.Scenario) map[string]figures {
	t.Helper()
	r, err := s.Run(t.Context(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]figures{}
	for _, p := range r.Runs {
		found[p.Name] = figures{p.Fleets[0].Success, p.Services[len(p.Services)-1].PerCall}
	}
	return found
}

// figures are what is compared.
type figures struct{ success, perCall float64 }

func (f figures) compare(t *testing.T, who, what string, other figures) {
	t.Helper()
	t.Logf("%-10s simulator %6.2f %%, %.3f requests a call; %s %6.2f %%, %.3f", who, 100*f.success, f.perCall, what, 100*other.success, other.perCall)
	if math.Abs(f.success-other.success) > points {
		t.Errorf("%s: success %.2f %% in the simulator, %.2f %% in %s; want within 3 points", who, 100*f.success, 100*other.success, what)
	}
	if math.Abs(f.perCall-other.perCall) > part*other.perCall {
		t.Errorf("%s: %.3f requests a call in the simulator, %.3f in %s; want within 5 %%", who, f.perCall, other.perCall, what)
	}
}

func TestTheSimulatorAgreesWithRealGRPCOnEveryStorm(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := simulate(t, s)
			for _, v := range s.Variants {
				var truth figures
				synctest.Test(t, func(t *testing.T) { truth = played(t, s, v) })
				found[v.Name].compare(t, v.Name, "real gRPC", truth)
			}
		})
	}
}

// The storms that are overloads are those in which a wrong model would be furthest off.
func TestTheScenariosBite(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	for name, want := range map[string]figures{"one fails": {0.75, 1}, "outage": {0, 1}, "pulse": {0.74, 1}} {
		got := simulate(t, all[name])["no retries"]
		if math.Abs(got.success-want.success) > 0.02 || got.perCall != want.perCall {
			t.Errorf("%s without retries: %+v; want %+v", name, got, want)
		}
	}
	if len(all) != 10 || !strings.Contains(all["chain pulse"].About, "three services") {
		t.Errorf("%d scenarios; want those of the ten storms", len(all))
	}
}
