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

// realistic are storms whose times are those of real services: with a spread, with a cache, with fast errors, and of a quiet client
// beside
// a busy one. The services have room for every retry, so those must help.
//
// Under the rules of 34db76f9 all but the one that hangs would miss these bounds: the yardstick of a long response was the fastest one
// ever, of five long ones no
// call was retried, and a quiet client had a reserve of 0.4 retries a second. In the simulator, 86.8 % succeeded with a spread, 96.2 with
// the cache, 91.4 with one answer of twenty in 1 ms (of OK: that simulator knew no fast errors), 88.6 where one hangs, and beside a busy
// client
// with 87.7 a quiet one with 85.1.
var realistic = []struct {
	file           string
	success, quiet float64 // at least; quiet: of the second fleet's calls
	perCall        float64 // at most
	grpc           bool    // gRPC's own retries, which know no attempt timeout, help here: without a throttle as much
}{
	{file: "spread-one-fails", success: 0.985, perCall: 1.4, grpc: true},
	{file: "cache-one-fails", success: 0.985, perCall: 1.4, grpc: true},
	{file: "fast-errors-one-fails", success: 0.93, perCall: 1.4, grpc: true},
	// A known gap: 97 % would be right. One of four extra attempts reaches the backend that hangs, and then the bucket runs dry.
	{file: "spread-one-hangs", success: 0.8, perCall: 1.6},
	{file: "quiet-beside-busy", success: 0.985, quiet: 0.985, perCall: 1.4, grpc: true},
}

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
