// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"cmp"
	"slices"
	"testing"
)

// mostRefused is the part of the calls that admission may refuse without an overload.
const mostRefused = 0.0005

// onAndOffLoss is what admission may cost in short overloads that calls would survive without it, and in a hundred processes
// compared with one.
const onAndOffLoss = 0.03

// Admission, from one connection and from many connections and processes, compared with no retries, stagger without it, and
// failsafe-go's adaptive limiter and throttler.
//
//	go test ./storm -run Admission -timeout 30m -v -args -grid . -write "$(mktemp -d)"
func TestAdmission(t *testing.T) {
	t.Parallel()
	storms, calm := admissionStorms(t)
	all, err := choose(storms, cmp.Or(*grid, "^(pulse|all slow)$"))
	if err != nil {
		t.Skip(err) // a storm of the grid without admission
	}
	outcomes := make([]*outcome, len(all))
	t.Cleanup(func() { write(t, "admission", outcomes) })
	for i, s := range all {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			who, refused := admissionClients(1)
			if *grid == "" {
				who = slices.DeleteFunc(who, func(c client) bool { return c.connections > 1 || c.processes == 10 || c.peer() })
			}
			o := playVirtually(t, s, who)
			outcomes[i] = o
			checkTargets(t, o)
			checkSimulator(t, o)
			for k, c := range o.clients {
				if !c.ours {
					continue
				}
				part := float64(refused[c.name].Load()) / float64(o.results[k].Calls)
				t.Logf("%s: %.2f %% of the calls are refused", c.name, 100*part)
				if slices.Contains(calm, s.Title) && part > mostRefused {
					t.Errorf("%s: %.2f %% of the calls are refused without an overload", c.name, 100*part)
				}
				if without := o.results[1]; o.results[k].Success < without.Success-onAndOffLoss {
					t.Errorf("%s: success %s; want no more than %v points below the %s without admission", c.name, percent(o.results[k]), 100*onAndOffLoss, percent(without))
				}
			}
		})
	}
}
