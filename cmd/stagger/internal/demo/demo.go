// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo shows the effect of retries on a service in trouble: a scripted day in the simulator.
package demo

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/simulate"
	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

// Command returns "stagger demo".
func Command() *cobra.Command {
	var (
		file string
		seed uint64
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a bad day for five clients: no retries, a loop, gRPC's own retries, stagger",
		Long: `Run a bad day for five clients: no retries, a loop, gRPC's own retries, stagger.

The clients make the same calls at the same times, each to its own four backends, in
virtual time: clients and servers are a model, the interceptor's own code decides.
"stagger explain" shows single calls, attempt by attempt.`,
		Example: `  stagger demo
  stagger demo --seed 7                the calls come at other times
  stagger demo --policy my/retry.yaml  stagger follows your policies for acme.orders.v1.OrderService
  stagger demo | tee demo.txt          plain text`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := policy.Parse(orders.File, orders.Policy)
			if file != "" {
				set, err = policy.Load(file)
			}
			if err != nil {
				return err
			}
			return showDay(cmd.Context(), set, seed, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`file` with the policies that stagger follows (default: examples/orders/retry.yaml, built in)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that seeds the times of the calls")
	return cmd
}

//go:embed day.yaml
var dayFile []byte

const stagger = "stagger"

// printf prints; a closed output is not an error.
func printf(out io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(out, format, values...) }

// playDay plays the day for the clients of its file, and for one that follows a policy.
func playDay(ctx context.Context, set *policy.Set, seed uint64) (*sim.Result, error) {
	day, err := sim.Parse("day.yaml", dayFile, nil)
	if err != nil {
		return nil, err
	}
	if day, err = day.With(stagger, set, ""); err != nil {
		return nil, err
	}
	return day.Run(ctx, sim.Options{Seed: seed})
}

const about = `Five clients make the same calls (seed %d), each to %d backends of its own that
serve %.0f requests/s together. Normal load is %.0f %% of that. 2 %% of the calls
create an order, the others read one.

  no retries  one attempt a call
  retry loop  4 attempts of 200 ms, one right after the other
  gRPC        its own retries: 4 attempts, after 100, 200 and 400 ms ± 20 %%
  gRPC 100/1  the same with a retryThrottling of 100 tokens, ratio 1
  stagger     retry.yaml: jitter, a budget, hedges for slow attempts

`

const troublesNote = `requests: arrivals at the servers. pulse: 1.5 times the capacity, until 99 % of
the calls of 250 ms succeed again. CreateOrder isn't declared idempotent:
stagger retries it only if no server can have seen it. The others may create an
order twice. gRPC wins the blip, and pays with four requests for each call in
the outage. gRPC 100/1 sends least in the outage, and pays with the blip.

`

// showDay plays the day, and shows what distinguishes the clients in each trouble, then all figures.
func showDay(ctx context.Context, set *policy.Set, seed uint64, out io.Writer) error {
	r, err := playDay(ctx, set, seed)
	if err != nil {
		return err
	}
	s := &r.Scenario.Services[0]
	printf(out, about, r.Seed, s.Backends, s.Capacity(), 100*r.Scenario.Phases[0].Load)
	t := report.Table{Title: "Four troubles, five clients", Columns: []string{
		"client", "blip:\nsuccess %", "one of four fails:\nsuccess %", "outage: requests\nfor each call",
		"pulse: back to\nnormal after, s", "requests for\neach CreateOrder",
	}}
	for i := range r.Runs {
		f := &r.Runs[i].Fleets[0]
		blip, one, outage := phase(r, i, "blip"), phase(r, i, "one of four"), phase(r, i, "outage")
		t.Rows = append(t.Rows, []string{
			r.Runs[i].Name, percent(blip), percent(one), fmt.Sprintf("%.2f", sim.Ratio(outage.requests, outage.calls)), f.Recovery.String(),
			fmt.Sprintf("%.2f", f.ByCall[1].PerCall),
		})
	}
	printf(out, "%s\n%s", terminal.Table(t, terminal.StyleOf(out), stagger), troublesNote)
	simulate.Write(out, terminal.StyleOf(out), r)
	return nil
}

// part counts what happened in a phase, which begins and ends with a bucket.
type part struct{ calls, succeeded, requests int }

func percent(p part) string { return fmt.Sprintf("%.1f", 100*sim.Ratio(p.succeeded, p.calls)) }

// phase counts the calls that began, and the requests that arrived, in the phase with this label.
func phase(r *sim.Result, run int, label string) part {
	var (
		counts part
		begin  time.Duration
		played = &r.Runs[run]
	)
	for _, p := range r.Scenario.Phases {
		end := begin + p.Length
		if strings.HasPrefix(p.Name, label+":") {
			for i := int(begin / r.Bucket); i < int(end/r.Bucket); i++ {
				counts.calls += played.Fleets[0].Begun[i]
				counts.succeeded += played.Fleets[0].Succeeded[i]
				counts.requests += played.Services[0].Arrivals[i]
			}
		}
		begin = end
	}
	return counts
}
