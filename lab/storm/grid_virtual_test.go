// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"cmp"
	"flag"
	"math"
	"testing"
)

var grid = flag.String("grid", "", "play the storms of the grid whose names match the expression, over all clients; without it, a small part")

// The grid: every storm from 1, 10 and 100 connections of one process, and from 10 and 100 processes, each compared with no
// retries over as many connections. Every configuration must reach stagger's targets.
//
//	go test ./storm -run Grid -timeout 30m -v -args -grid . -write "$(mktemp -d)"
func TestGrid(t *testing.T) {
	t.Parallel()
	all, err := choose(gridStorms(t), cmp.Or(*grid, "^(outage|all slow)$"))
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make([]*outcome, len(all))
	t.Cleanup(func() { write(t, "grid", outcomes) })
	for i, s := range all {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			outcomes[i] = playVirtually(t, s, gridClients(1))
			checkTargets(t, outcomes[i])
			checkSimulator(t, outcomes[i])
		})
	}
}

// checkTargets fails the test for every target that stagger misses by more than chance explains.
func checkTargets(t *testing.T, o *outcome) {
	t.Helper()
	for i, c := range o.clients {
		if !c.ours {
			continue
		}
		r, without := o.results[i], o.without(c)
		for _, v := range forgiving(o.storm.targetOf(c), r, without).judge(r, without) {
			if v.judgement != pass {
				t.Errorf("%s: %s: %s: %s, %s", c.name, v.judgement, v.claim, v.is, v.beside)
			}
		}
	}
}

// forgiving returns a target that every run can reach. With many connections, simultaneous calls come in an order that
// depends on the scheduler. It allows for two standard deviations of the success and, in the recovery, for the effect of one
// call on either.
func forgiving(t target, r, without result) target {
	deviations := func(success float64) float64 { return 2 * math.Sqrt(success*(1-success)/float64(max(r.Calls, 1))) }
	if t.success > 0 {
		t.success -= deviations(t.success)
	}
	if t.share > 0 && without.Success > 0 {
		t.share -= deviations(without.Success) / without.Success
	}
	if took := without.Recovery.Took.Seconds(); t.recovery > 0 && took > 0 {
		t.recovery += slack / took
	}
	return t
}
