// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Five attempts per hop make 125 requests at the last service for one call, unless the hop nearest to the trouble reports
// that it has given up.
func TestChainOfRetries(t *testing.T) {
	t.Parallel()
	s := must.Get(load("storms/chain-outage.yaml"))(t)
	s.Fleets[0].Calls[0].Deadline = time.Minute
	s.Phases = []sim.Phase{{Length: time.Second, Faults: []sim.Fault{{Service: s.last().Name, Down: true, Code: codes.Unavailable}}}}
	for name, want := range map[string][]int{
		"no retries":      {1, 1, 1},
		"grpc-middleware": {5, 25, 125},
		"gRPC":            {5, 25, 125},
		"stagger":         {1, 1, 5}, // one layer retries; the reserve is still four extra attempts
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := clients(1)
			c := all[slices.IndexFunc(all, func(c client) bool { return c.name == name })]
			synctest.Test(t, func(t *testing.T) {
				o := outage.Outage{
					Scenario: s.Scenario, Calls: []outage.Call{{Method: s.Fleets[0].Calls[0].Method}}, Clients: []outage.Client{c.in(s)},
				}
				records := must.Get(o.Play(t.Context()))(t)
				var requests []int
				for _, list := range records[0].Requests {
					requests = append(requests, len(list))
				}
				if !slices.Equal(requests, want) || records[0].Calls[0].OK {
					t.Errorf("%v requests, %+v; want %v, and a failure", requests, records[0].Calls[0], want)
				}
			})
		})
	}
}
