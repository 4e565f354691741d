// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"flag"
	"slices"
	"testing"
)

var whole = flag.Bool("grid", false, "play the grid over every storm, and not over a part of them")

// part are the storms of the grid that are played without -grid: those whose targets a change would miss first.
var part = []string{"pulse", "one hangs", "outage", "all slow"}

// The grid: every storm from 1, 10 and 100 connections of one process, and from 10 and 100 processes, each beside no
// retries from as many connections. What stagger should reach has to be reached from everywhere.
//
//	go test ./storm -run Grid -timeout 30m -v -args -grid -write "$(mktemp -d)"
func TestGrid(t *testing.T) {
	t.Parallel()
	all := gridStorms(t)
	if !*whole {
		all = slices.DeleteFunc(all, func(s storm) bool { return !slices.Contains(part, s.Title) })
	}
	outcomes := make([]*outcome, len(all))
	t.Cleanup(func() { write(t, "grid", outcomes) })
	for i, s := range all {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			outcomes[i] = playVirtually(t, s, gridClients(1))
			checkClaims(t, outcomes[i])
			checkSimulator(t, outcomes[i])
		})
	}
}
