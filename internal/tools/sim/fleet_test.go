// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
	"time"
)

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
