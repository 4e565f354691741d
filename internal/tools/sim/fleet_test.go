// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
	"time"
)

// Clients that think wait for the service.
func TestFleetThink(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers = 100
	s.Fleets[0].Clients, s.Fleets[0].Think = 50, &Distribution{A: 900 * time.Millisecond}
	s.Phases[0].Length = 100 * time.Second
	f := play(t, s, Options{}).Runs[0].Fleets[0]
	if f.Calls < 4950 || f.Calls > 5000 { // each of the 50 once a second: 900 ms and 100 ms
		t.Errorf("%d calls in 100 s; want 50 a second", f.Calls)
	}
}

// A ramp has the number of calls of its average load, most of them where the load is high.
func TestFleetRamp(t *testing.T) {
	t.Parallel()
	const rate = 2000.0
	for _, row := range []struct {
		from, to float64
		second   float64 // calls in the last half of the ramp
	}{{0, 2, 1.5 * 5}, {2, 0, 0.5 * 5}, {0.5, 1.5, 1.25 * 5}, {1, 1, 5}, {0, 0, 0}} {
		s := small()
		s.Services[0].Workers, s.Services[0].Time = 1000, &Distribution{A: time.Millisecond}
		s.Fleets[0].Rate = rate
		s.Phases = []Phase{{Name: "ramp", Length: 10 * time.Second, Load: row.from, LoadTo: &row.to}}
		begun := play(t, s, Options{}).Runs[0].Fleets[0].Begun
		second := float64(total(begun[len(begun)/2:])) / rate
		all := float64(total(begun)) / rate
		if want := 5 * (row.from + row.to); math.Abs(all-want) > 0.2 || math.Abs(second-row.second) > 0.15 {
			t.Errorf("from %v to %v: %v times the rate, and %v in the last half; want %v and %v", row.from, row.to, all, second, want, row.second)
		}
	}
}

// Lost messages are never answered.
func TestLinkLoss(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers = 1000
	s.Fleets[0].Rate, s.Fleets[0].Calls[0].Loss = 1000, 0.1
	s.Fleets[0].Calls[0].Delay = &Distribution{A: 5 * time.Millisecond}
	f := play(t, s, Options{}).Runs[0].Fleets[0]
	if want := 0.9 * 0.9; math.Abs(f.Success-want) > 0.015 {
		t.Errorf("success %.3f; want %.3f: request and answer both arrive", f.Success, want)
	}
	if f.P50 < 110*time.Millisecond || f.P50 > 112*time.Millisecond || f.P99 != time.Minute {
		t.Errorf("p50 %v, p99 %v; want 110 ms, there and back, and the deadline", f.P50, f.P99)
	}
}
