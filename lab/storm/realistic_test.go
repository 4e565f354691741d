// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

// Where times vary as in real services, retries help as they do with constant times, and as much as those of any peer that makes as much
// of a slow attempt.
func TestRealisticTimesBesideItsPeers(t *testing.T) {
	t.Parallel()
	titles := regexp.MustCompile(*pattern)
	for _, row := range realistic {
		s := load(t, row.file)
		if !titles.MatchString(s.Title) {
			continue
		}
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			testkit.Judge(t, func(one testing.TB) {
				o := play(t, s, slices.DeleteFunc(clients(), func(c client) bool { return c.connections > 1 }))
				none, own := o.results[0], o.results[1]
				for i, c := range o.clients {
					peer := o.results[i]
					one.Logf("%s: of each fleet's calls succeed %.3f; %.2f requests a call", c.name, peer.Fleets, peer.PerCall)
					if !c.ours && c.onSlow.comparable(s) && own.Success < peer.Success-0.02 {
						one.Errorf("success %s; want at most two points below the %s of %s", percent(own), percent(peer), c.name)
					}
				}
				if none.Success > 0.77 {
					one.Errorf("without retries, success %s; want the fault to hit a quarter of the calls", percent(none))
				}
				if own.Success < row.success || own.PerCall > row.perCall || row.quiet > 0 && own.Fleets[1] < row.quiet {
					one.Errorf("success %s, of each fleet %.3f, %.2f requests a call; want %+v", percent(own), own.Fleets, own.PerCall, row)
				}
				checkSimulator(one, o)
			})
		})
	}
}

// In an outage of 10 s, few requests are added, whether one process makes the calls or a hundred do.
func TestOutageAddsFewRequests(t *testing.T) {
	t.Parallel()
	r := testkit.Must(load(t, "outage").Run(t.Context(), sim.Options{}))(t)
	for _, run := range r.Runs {
		perCall := run.Services[0].PerCall
		if t.Logf("%s: %.3f requests a call", run.Name, perCall); perCall > 1.15 {
			t.Errorf("%s: %.3f requests a call; want 1.15", run.Name, perCall)
		}
	}
}
