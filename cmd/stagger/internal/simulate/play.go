// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// many is the number of clients from which on only two processors are used: each budget is spread over as many cache lines
// as there are processors, up to 8 KiB, although only one of them plays a variant.
const many = 100_000

// play plays a scenario, and shows its progress on errs.
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

// held returns the memory in bytes that the runtime has and has not returned.
func held() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// sketch has the numbers of --new.
type sketch struct {
	is      bool
	rate    float64
	latency time.Duration
	workers int
}

// given reports whether any of the numbers is set.
func (k *sketch) given() bool { return k.rate != 0 || k.latency != 0 || k.workers != 0 }

// create writes a scenario for a policy file.
func (o *options) create(cmd *cobra.Command) error {
	s, err := o.sketched(cmd)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		return err
	}
	file := s.Policies["own"]
	if _, err := sim.Parse("the new scenario", []byte(text.String()), func(string) ([]byte, error) { return []byte(file.Text), nil }); err != nil {
		return err
	}
	return cli.WriteFile(cmd, o.output, []byte(text.String()))
}

// sketched returns the scenario. Its path to the policy file starts at the scenario's folder.
func (o *options) sketched(cmd *cobra.Command) (*sim.Scenario, error) {
	data, err := cli.ReadFile(cmd, o.policy)
	if err != nil {
		return nil, err
	}
	p, err := sim.ReadPolicy(o.policy, data)
	if err != nil {
		return nil, err
	}
	if o.output != "" && !filepath.IsAbs(o.policy) {
		if p.File, err = beside(o.output, o.policy); err != nil {
			return nil, err
		}
	}
	s, err := sim.Sketch{
		Policy: p, Method: methodPath(o.method), Rate: o.sketch.rate, Latency: o.sketch.latency, Workers: o.sketch.workers, Processes: o.clients,
	}.Scenario()
	if err != nil {
		return nil, cli.UsageErrorf("--new: %v", err)
	}
	return s, nil
}

// beside returns the path of a file relative to another one's folder.
func beside(from, file string) (string, error) {
	from, errFrom := filepath.Abs(from)
	file, errFile := filepath.Abs(file)
	path, err := filepath.Rel(filepath.Dir(from), file)
	return path, cmp.Or(errFrom, errFile, err)
}
