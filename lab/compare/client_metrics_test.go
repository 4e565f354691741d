// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestMetricsAllocateLittle holds what stagger's metrics allocate against what gRPC's do. Those of a success are none.
func TestMetricsAllocateLittle(t *testing.T) {
	added := func(name string, without, with client) float64 {
		allocations := func(k client) float64 {
			c := named(t, name)
			made, err := k.prepare(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			do, _, release, err := c.connect(made)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			return testing.AllocsPerRun(500, func() {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			})
		}
		return allocations(with) - allocations(without)
	}
	for name, base := range map[string][2]client{"success, metrics": {bare, bareMetrics}, "one failure, metrics": {builtIn, builtInMetrics}} {
		theirs, ours := added(name, base[0], base[1]), added(name, stagger, ourMetrics)
		t.Logf("%s: gRPC's metrics add %v allocations, stagger's %v", name, theirs, ours)
		if theirs < 10 || ours > 1.1*theirs || name == "success, metrics" && ours > 2 || name == "one failure, metrics" && ours < 2 {
			t.Errorf("%s: gRPC's metrics add %v allocations, stagger's %v; want at most a tenth more, hardly any for a success, and some for a failure", name, theirs, ours)
		}
	}
}
