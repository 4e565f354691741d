// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Under the race detector a storm takes fifteen times as long, and shows nothing more.

package main

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// inVirtualTime plays a storm for the first client, which does not retry, and those named. Calls come at the same times in
// every run, and jitter is drawn from a seed.
func inVirtualTime(t *testing.T, s storm, names ...string) *outcome {
	t.Helper()
	all := s.clients(1)
	who := all[:1:1]
	for _, name := range names {
		i := slices.IndexFunc(all, func(c client) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("no client is named %q", name)
		}
		who = append(who, all[i])
	}
	return playVirtually(t, s, who)
}

// playVirtually plays a storm for some clients in parallel.
func playVirtually(t *testing.T, s storm, who []client) *outcome {
	t.Helper()
	var r *outcome
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = run(t.Context(), s, who, options{seed: 1, parallel: len(who)}, func() {}); err != nil {
			t.Fatal(err)
		}
	})
	printOutcome(t.Output(), r, false)
	if len(r.ours()) > 0 {
		printVerdicts(t.Output(), []*outcome{r}, false)
	}
	return r
}

// misses are the known misses in comparisons with peers: a part of each claim, and of why. Unlimited retries outlast an
// outage of 3 s, and a breaker that refuses half of all calls leaves an overload sooner.
var misses = map[string][2]string{
	"chain outage": {"success no lower", "stagger's budget ends them"},
	"chain pulse":  {"time to recover no longer", "what is not sent need not be served"},
	"pulse":        {"time to recover no longer", "what is not sent need not be served"}, // depends on where its breaker

	// Without retries elsewhere, least_request sends them to the failing backend; and a budget of a tenth of an extra
	// attempt per call refuses those that would help every second call.
	"one fails, least request": {"success no lower than that of any peer", "stagger's budget ends them"},
	"two fail":                 {"success no lower than that of any peer", "stagger's budget ends them"},
}

var (
	everyPeer = flag.Bool("all", false, "play the storms over every client")
	folder    = flag.String("write", "", "write the report of the storms in virtual time to this folder")
)

// rivals are stagger and the peers to compare it with; of several with the same behaviour, one.
func rivals(s storm) []string {
	var names []string
	for _, c := range clients(1)[1:] {
		alike := slices.Contains([]string{"failsafe", "failsafe, budget", "gRPC, throttling"}, c.name)
		if *everyPeer || c.onSlow.comparable(s) && !alike {
			names = append(names, c.name)
		}
	}
	return names
}

// The short form of `make storm`: stagger must reach its targets here too, with any number of connections.
//
//	go test ./storm -run BesideItsPeers -v -args -all -write "$(mktemp -d)"
func TestStaggerBesideItsPeers(t *testing.T) {
	t.Parallel()
	all := allStorms(t)
	outcomes := make([]*outcome, len(all))
	t.Cleanup(func() { write(t, "storm", outcomes) })
	for i, s := range all {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			outcomes[i] = inVirtualTime(t, s, rivals(s)...)
			checkClaims(t, outcomes[i])
			checkSimulator(t, outcomes[i])
		})
	}
}

// write writes the results to the requested folder.
func write(t *testing.T, name string, outcomes []*outcome) {
	t.Helper()
	if *folder == "" || slices.Contains(outcomes, nil) {
		return
	}
	path := filepath.Join(*folder, name)
	if err := export(t.Output(), options{seed: 1, html: path + ".html", json: path + ".json"}, outcomes); err != nil {
		t.Error(err)
	}
	printVerdicts(t.Output(), outcomes, true)
	printWorse(t.Output(), outcomes, true)
}

// checkClaims fails the test for every claim about stagger that does not hold, except known ones.
func checkClaims(t *testing.T, r *outcome) {
	t.Helper()
	known, ok := misses[r.storm.Title]
	for i, c := range r.clients {
		for _, v := range r.results[i].verdicts {
			excused := ok && strings.HasPrefix(v.claim, known[0]) && strings.Contains(v.why, known[1])
			if c.ours && v.judgement != pass && !excused {
				t.Errorf("%s: %s: %s: %s, %s (%s)", c.name, v.judgement, v.claim, v.is, v.beside, v.why)
			}
		}
	}
}

// Results of clients with known behaviour show whether the storms are effective.
func TestStormsBite(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ success, perCall, peer float64 }{ // without retries, without, of the peer
		"one fails": {0.75, 1, 1.33},
		"one hangs": {0.75, 1, 1.32},
		"outage":    {0, 1, 4}, // the fifth would come after the deadline
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			some := must.Get(choose(allStorms(t), name))(t)
			r := inVirtualTime(t, some[0], "grpc-middleware")
			none, peer := r.results[0], r.results[1]
			near(t, "success without retries", none.Success, want.success, 0.02)
			near(t, "requests per call without retries", none.PerCall, want.perCall, 0.001)
			near(t, "requests per call with them", peer.PerCall, want.peer, 0.03)
		})
	}
}

func TestPulseWithoutBudget(t *testing.T) {
	t.Parallel()
	some := must.Get(choose(allStorms(t), "^pulse$"))(t)
	r := inVirtualTime(t, some[0], "grpc-middleware")
	none, peer := r.results[0], r.results[1]
	if peer.judgement() != miss || peer.Recovery.State != sim.RecoveryNever {
		t.Errorf("%s, recovered after %v; want %s, never", peer.judgement(), peer.Recovery, miss)
	}
	if none.Recovery.State != sim.RecoveryReturned || none.judgement() != unjudged {
		t.Errorf("without retries: %s, recovered after %v; want it to recover, and no judgement", none.judgement(), none.Recovery)
	}
	near(t, "arrivals without retries, in capacities", none.Peak, 1.5, 0.3)
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if got < want-by || got > want+by {
		t.Errorf("%s: %.4f; want %v, give or take %v", what, got, want, by)
	}
}
