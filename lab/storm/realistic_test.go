// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"regexp"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Where times vary as in real services, retries help as they do with constant times.
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
			o := play(t, s, named(clients(), "gRPC", "gRPC, throttling", "stagger"))
			for i, c := range o.clients {
				t.Logf("%s: of each fleet's calls succeed %.3f; %.2f requests a call", c.name, o.results[i].Fleets, o.results[i].PerCall)
			}
			none, own, grpc := o.results[0], o.results[1], o.results[2]
			if none.Success > 0.77 {
				t.Errorf("without retries, success %s; want the fault to hit a quarter of the calls", percent(none))
			}
			if own.Success < row.success || own.PerCall > row.perCall || row.quiet > 0 && own.Fleets[1] < row.quiet {
				t.Errorf("success %s, of each fleet %.3f, %.2f requests a call; want %+v", percent(own), own.Fleets, own.PerCall, row)
			}
			if row.grpc && own.Success < grpc.Success-0.01 {
				t.Errorf("success %s; want at most a point below the %s of gRPC without a throttle", percent(own), percent(grpc))
			}
			if s.Title != "spread, one hangs" { // when the bucket runs dry is chance
				checkSimulator(t, o)
			}
		})
	}
}

// In an outage of 10 s, few requests are added, whether one process makes the calls or a hundred do.
func TestOutageAddsFewRequests(t *testing.T) {
	t.Parallel()
	r := must.Get(load(t, "outage").Run(t.Context(), sim.Options{}))(t)
	for _, run := range r.Runs {
		perCall := run.Services[0].PerCall
		if t.Logf("%s: %.3f requests a call", run.Name, perCall); perCall > 1.15 {
			t.Errorf("%s: %.3f requests a call; want 1.15", run.Name, perCall)
		}
	}
}
