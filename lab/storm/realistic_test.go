// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"regexp"
	"testing"
)

// realistic are storms whose times are those of real services: with a spread, with a cache, with fast errors, and of a quiet client beside
// a busy one. The services have room for every retry, so those must help.
var realistic = []struct {
	file           string
	success, quiet float64 // at least; quiet: of the second fleet's calls
	perCall        float64 // at most
	grpc           bool    // gRPC's own retries, which know no attempt timeout, help here: without a throttle as much
}{
	{file: "spread-one-fails", success: 0.985, perCall: 1.4, grpc: true},
	{file: "cache-one-fails", success: 0.985, perCall: 1.4, grpc: true},
	{file: "fast-errors-one-fails", success: 0.93, perCall: 1.4, grpc: true},
	{file: "spread-one-hangs", success: 0.97, perCall: 1.6},
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
			checkSimulator(t, o)
		})
	}
}
