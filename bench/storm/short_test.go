// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Under the race detector a storm takes fifteen times as long, and says nothing else.

package main

import (
	"slices"
	"testing"
	"testing/synctest"
)

// inVirtualTime plays a storm over the first contender, which does not retry, and those named. Calls
// come at the same times in every run, and jitter is drawn from a seed.
func inVirtualTime(t *testing.T, s storm, names ...string) report {
	t.Helper()
	all := contenders(1)
	who := all[:1:1]
	for _, name := range names {
		i := slices.IndexFunc(all, func(c contender) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("no contender is named %q", name)
		}
		who = append(who, all[i])
	}
	var r report
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = run(t.Context(), s, newShape(), who, 1, len(who)); err != nil {
			t.Fatal(err)
		}
	})
	printReport(t.Output(), r, false)
	return r
}

// The short form of `make storm`, whose targets have to be reached here too.
func TestStaggerReachesItsTargetsFromAnyNumberOfConnections(t *testing.T) {
	t.Parallel()
	for _, s := range storms() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := inVirtualTime(t, s, "stagger", "stagger, 10 conns", "stagger, 100 conns")
			if !r.reached() {
				t.Errorf("missed: %s", s.target)
			}
		})
	}
}

// What the storms do to clients whose behaviour is known says whether the storms bite.
func TestStormsBite(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ success, perCall, peer float64 }{ // without retries, without, of the peer
		"one fails": {0.75, 1, 1.33},
		"one hangs": {0.75, 1, 1.32},
		"outage":    {0, 1, 4}, // the fifth would come after the deadline
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			some, err := choose(storms(), name)
			if err != nil {
				t.Fatal(err)
			}
			r := inVirtualTime(t, some[0], "grpc-middleware")
			none, peer := r.results[0], r.results[1]
			near(t, "success without retries", none.success, want.success, 0.02)
			near(t, "requests per call without retries", none.perCall, want.perCall, 0.001)
			near(t, "requests per call with them", peer.perCall, want.peer, 0.03)
		})
	}
}

func TestRetriesWithoutABudgetMissTheirTargetInAPulse(t *testing.T) {
	t.Parallel()
	some, err := choose(storms(), "^pulse$")
	if err != nil {
		t.Fatal(err)
	}
	r := inVirtualTime(t, some[0], "grpc-middleware")
	none, peer := r.results[0], r.results[1]
	if peer.judgement != miss || peer.recovery.state != never {
		t.Errorf("%s, recovered after %v; want %s, never", peer.judgement, peer.recovery, miss)
	}
	if none.recovery.state != returned || none.judgement != unjudged {
		t.Errorf("without retries: %s, recovered after %v; want it to recover, and no judgement", none.judgement, none.recovery)
	}
	near(t, "arrivals without retries, in capacities", none.peak, pulse, 0.3)
}
