// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// many clients are played on two processors at most: each budget is spread over as many cache lines as there
// are processors, up to 8 KiB, and one variant is played by one of them anyway.
const many = 100_000

// play plays a scenario, and shows on errs how far it is.
func play(ctx context.Context, s *sim.Scenario, o sim.Options, errs io.Writer) (*sim.Result, error) {
	if clients(s, o) >= many {
		o.Parallel = 1
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))))
	}
	bar := terminal.NewProgress(errs, s.Title)
	var most uint64
	o.Progress = func(part float64) {
		most = max(most, held())
		bar.Set(part)
	}
	start := time.Now()
	r, err := s.Run(ctx, o)
	bar.Clear()
	if err != nil {
		return nil, err
	}
	var events uint64
	for _, p := range r.Runs {
		events += p.Events
	}
	took := time.Since(start)
	_, _ = fmt.Fprintf(errs, "%d events in %v", events, took.Round(time.Millisecond))
	if n := clients(s, o); most > 0 && n >= many {
		_, _ = fmt.Fprintf(errs, "; %.1f GiB of memory, %d bytes for each of %d clients", float64(most)/(1<<30), most/uint64(n), n)
	}
	_, _ = fmt.Fprintln(errs)
	return r, nil
}

// clients is how many clients the largest variant has.
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

// held is the memory that the runtime has and has not given back, in bytes.
func held() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
