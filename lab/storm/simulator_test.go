// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Tolerances for the simulator.
const (
	successOff = 0.03 // of all calls
	fewOff     = 0.06 // of all calls, if a hundred gates learn from few answers each: runs over gRPC differ by two points
	perCallOff = 0.05 // of the requests per call
)

// simulated has the simulator's figures by client: success, and requests per call at the last service.
func simulated(t *testing.T, s storm) map[string]outage.Result {
	t.Helper()
	r := must.Get(s.Run(t.Context(), sim.Options{}))(t)
	results := map[string]outage.Result{}
	for _, run := range r.Runs {
		results[run.Name] = outage.Result{Success: run.Fleets[0].Success, PerCall: run.Services[len(run.Services)-1].PerCall}
	}
	return results
}

// compare fails the test if the simulator's figures are outside the tolerance.
func compare(t *testing.T, client, where string, sim, played outage.Result, off float64) {
	t.Helper()
	t.Logf("%-10s simulator %6.2f %%, %.3f requests a call; %s %6.2f %%, %.3f", client, 100*sim.Success, sim.PerCall, where, 100*played.Success, played.PerCall)
	if math.Abs(sim.Success-played.Success) > off {
		t.Errorf("%s: success %.2f %% in the simulator, %.2f %% in %s; want within %v points", client, 100*sim.Success, 100*played.Success, where, 100*off)
	}
	if math.Abs(sim.PerCall-played.PerCall) > perCallOff*played.PerCall {
		t.Errorf("%s: %.3f requests a call in the simulator, %.3f in %s; want within 5 %%", client, sim.PerCall, played.PerCall, where)
	}
}

// checkSimulator compares a storm over real gRPC in virtual time with the simulator's.
func checkSimulator(t *testing.T, o *outcome) {
	t.Helper()
	found, compared := simulated(t, o.storm), 0
	for i, c := range o.clients {
		if sim, ok := found[c.name]; ok {
			off := successOff
			if c.many() && strings.HasPrefix(c.name, admission) {
				off = fewOff
			}
			compare(t, c.name, "real gRPC", sim, o.results[i].Result, off)
			compared++
		}
	}
	if compared < 2 {
		t.Errorf("%d clients are called as the simulator's variants: %v; want no retries and stagger at least", compared, found)
	}
}

var measured = flag.String("measured", "testdata/storm.json", "the `file` that make storm wrote with -json")

// The simulator also agrees with the results of make storm in real time.
func TestSimulatorAgreesWithRealTime(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(*measured))(t)
	var f file
	must.Do(t, json.Unmarshal(text, &f))
	compared := map[string]int{}
	for _, s := range allStorms(t) {
		for _, l := range f.Storms {
			if l.Name == s.Title && !reflect.DeepEqual(l, newStormLine(s)) {
				t.Errorf("%s has changed since it was measured: %+v; was %+v", s.Title, newStormLine(s), l)
			}
		}
		found := simulated(t, s)
		for _, l := range f.Results {
			sim, ok := found[l.Client]
			switch {
			case l.Storm != s.Title || !ok:
			case l.Late > inMillis(outage.TooLate):
				t.Logf("%s, %s: the machine could not keep up", l.Storm, l.Client)
			default:
				compared[l.Storm]++
				compare(t, l.Client, "make storm, "+l.Storm, sim, outage.Result{Success: l.Success, PerCall: l.PerCall}, successOff)
			}
		}
	}
	if len(compared) != len(allStorms(t)) {
		t.Errorf("%d storms were compared; want all", len(compared))
	}
}
