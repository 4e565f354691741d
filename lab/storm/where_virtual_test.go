// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"

	_ "google.golang.org/grpc/balancer/weightedroundrobin" // the policy weighted_round_robin

	"github.com/stagger-go/stagger/internal/tools/outage"
)

// weightedRoundRobin uses new weights as soon as possible.
const weightedRoundRobin = `[{"weighted_round_robin": {"blackoutPeriod": "0.1s", "weightUpdatePeriod": "0.1s"}}]`

// If half of the workers are gone, it matters which: two backends keep 2 of 5, two 3. gRPC's own load balancing policies
// inside package balancer's, with and without admission, from 1, 10 and 100 processes.
//
//	go test ./storm -run HalfTheWorkersElsewhere -v -args -all
func TestHalfTheWorkersElsewhere(t *testing.T) {
	t.Parallel()
	if !*everyPeer {
		t.Skip("a measurement; -args -all plays it")
	}
	for _, leaf := range []string{`[{"round_robin": {}}]`, `[{"` + leastRequest + `": {}}]`, weightedRoundRobin} {
		for _, with := range []bool{false, true} {
			t.Run(fmt.Sprint(leaf, ", admission: ", with), func(t *testing.T) {
				s, err := load("storms/half-the-workers.yaml")
				if err != nil {
					t.Fatal(err)
				}
				s.Services[0].Reports = true
				var list []client
				for _, processes := range []int{1, 10, 100} {
					list = append(list, client{
						name: fmt.Sprintf("%d processes", processes), connections: 1, processes: processes, retries: whereElsewhere,
						options: func(s storm) (outage.Options, error) { return whereOptions(s, leaf, with) },
					})
				}
				o := playVirtually(t, s, list)
				for i, c := range o.clients {
					t.Logf("%s: success %s", c.name, percent(o.results[i]))
				}
			})
		}
	}
}

// whereOptions returns the options of a process with retries elsewhere, and a load balancing policy inside.
func whereOptions(s storm, leaf string, admits bool) (outage.Options, error) {
	s.leaf = cmp.Or(leaf, s.leaf)
	if admits {
		return admitting(s, 1, new(atomic.Int64), "loadBalancingConfig: "+s.balancing(true))
	}
	return stagger(s, whereElsewhere, 1)
}
