// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// afterwards returns a client's result with this time to recover.
func afterwards(seconds float64) sim.Recovered {
	return sim.Recovered{State: sim.RecoveryReturned, Took: time.Duration(seconds * float64(time.Second))}
}

// quiet returns a storm without an overload.
var quiet = &sim.Scenario{}

// among returns stagger's result and its verdicts compared with peers.
func among(s storm, ours outage.Result, peers map[onSlow]outage.Result) *outcome {
	o := &outcome{storm: s, clients: []client{{name: "no retries"}, {name: "stagger", ours: true, connections: 1, onSlow: onSlowTimeout}}}
	o.results = []result{{Result: outage.Result{Recovery: sim.Recovered{State: sim.RecoveryNever}}}, {Result: ours}}
	for slow, r := range peers {
		o.clients = append(o.clients, client{name: "peer", onSlow: slow})
		o.results = append(o.results, result{Result: r})
	}
	o.judge()
	return o
}

func TestVerdictsBesidePeers(t *testing.T) {
	t.Parallel()
	timeouts := storm{Scenario: quiet, attemptTimeout: 100 * ms}
	ours := outage.Result{Calls: 10_000, Success: 0.9, Recovery: afterwards(1)}
	better := outage.Result{Calls: 10_000, Success: 0.95, Recovery: afterwards(1)}
	sooner := outage.Result{Calls: 10_000, Success: 0.5, Recovery: afterwards(0.89)}
	lost := outage.Result{Calls: 10_000, Success: 0.95, Recovery: sim.Recovered{State: sim.RecoveryNever}}
	late := better
	late.Late = outage.TooLate + 1
	for name, row := range map[string]struct {
		storm storm
		ours  outage.Result
		peers map[onSlow]outage.Result
		want  judgement
	}{
		"no peer recovers":            {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: lost}, unjudged},
		"a peer succeeds more often":  {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: better}, miss},
		"but it does not time out":    {timeouts, ours, map[onSlow]outage.Result{onSlowWait: better}, unjudged},
		"or it hedges without need":   {storm{Scenario: quiet}, ours, map[onSlow]outage.Result{onSlowHedge: better}, unjudged},
		"it hedges in its place":      {timeouts, ours, map[onSlow]outage.Result{onSlowHedge: better}, miss},
		"no peer times out":           {storm{Scenario: quiet}, ours, map[onSlow]outage.Result{onSlowWait: better}, miss},
		"within chance":               {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: {Calls: 10_000, Success: 0.908, Recovery: afterwards(1)}}, pass},
		"beyond it":                   {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: {Calls: 10_000, Success: 0.909, Recovery: afterwards(1)}}, miss},
		"a peer recovers sooner":      {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: sooner}, miss},
		"hardly sooner":               {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: {Calls: 10_000, Success: 0.5, Recovery: afterwards(0.9)}}, pass},
		"stagger never does":          {timeouts, lost, map[onSlow]outage.Result{onSlowTimeout: sooner}, miss},
		"the peer's calls were late":  {timeouts, ours, map[onSlow]outage.Result{onSlowTimeout: late}, void},
		"there is nothing to recover": {timeouts, outage.Result{Calls: 10, Success: 1}, map[onSlow]outage.Result{onSlowTimeout: {Calls: 10, Success: 1}}, pass},
	} {
		if got := among(row.storm, row.ours, row.peers).results[1].judgement(); got != row.want {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}

func TestReached(t *testing.T) {
	t.Parallel()
	for own, want := range map[judgement]bool{pass: true, unjudged: true, miss: false, void: false} {
		r := outcome{clients: []client{{}, {ours: true}}, results: []result{{verdicts: []verdict{{judgement: miss}}}, {}}}
		if own != unjudged {
			r.results[1].verdicts = []verdict{{judgement: pass}, {judgement: own}, {judgement: pass}}
		}
		if got := r.reached(); got != want {
			t.Errorf("a peer that misses, and stagger with %s: reached %v; want %v", own, got, want)
		}
	}
}

func TestWorse(t *testing.T) {
	t.Parallel()
	ours := outage.Result{Calls: 10_000, Success: 0.9, Recovery: afterwards(1), PerCall: 1.2, P99: 300 * ms}
	got := among(storm{Scenario: &sim.Scenario{Title: "x"}}, ours, map[onSlow]outage.Result{onSlowWait: {
		Calls: 10_000, Success: 0.95, Recovery: sim.Recovered{State: sim.RecoveryNever}, PerCall: 1.1, P99: 200 * ms,
	}}).worse()
	var names []string
	for _, w := range got {
		names = append(names, w.figure+": "+w.is+", "+w.peers)
	}
	const want = "success: 90.0 %, peer 95.0 %; requests per call: 1.20, peer 1.10; p99: 300 ms, peer 200 ms"
	if text := strings.Join(names, "; "); text != want {
		t.Errorf("got %s; want %s", text, want)
	}
	// A peer that lets more calls fail sends less; and results of a machine that was too slow don't count.
	if got := among(storm{Scenario: quiet}, ours, map[onSlow]outage.Result{onSlowWait: {Calls: 10_000, Success: 0.8, PerCall: 1, Recovery: afterwards(1)}}).worse(); len(got) != 0 {
		t.Errorf("%+v; want nothing about a peer that succeeds less often", got)
	}
	if got := among(storm{Scenario: quiet}, ours, map[onSlow]outage.Result{onSlowWait: {Calls: 10_000, Success: 1, Late: outage.TooLate + 1}}).worse(); len(got) != 0 {
		t.Errorf("%+v; want nothing about a peer whose calls were late", got)
	}
}
