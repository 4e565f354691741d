// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/stagger-go/stagger/internal/sim"
)

// many is the number of clients from which on only two processors are used: each budget is spread over as many cache lines
// as there are processors, up to 8 KiB, although only one of them plays a variant.
const many = 100_000

// play plays a scenario, and writes to errs how long it took.
func play(ctx context.Context, s *sim.Scenario, o sim.Options, errs io.Writer) (*sim.Result, error) {
	if clients(s, o) >= many {
		o.Parallel = 1
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))))
	}
	start := time.Now()
	r, err := s.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	var events uint64
	for _, p := range r.Runs {
		events += p.Events
	}
	_, _ = fmt.Fprintf(errs, "%d events in %v\n", events, time.Since(start).Round(time.Millisecond))
	return r, nil
}

// clients returns the number of clients in the largest variant.
func clients(s *sim.Scenario, o sim.Options) int {
	if o.Clients > 0 {
		return o.Clients * len(s.Fleets)
	}
	most, own := 0, 0
	for _, f := range s.Fleets {
		own += f.Clients
	}
	for _, v := range s.Variants {
		most = max(most, v.Clients*len(s.Fleets))
	}
	return max(most, own)
}
