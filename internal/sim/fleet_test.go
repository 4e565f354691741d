// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
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
