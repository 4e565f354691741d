// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo shows the effect of retries on services in trouble: a scripted day in the simulator.
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
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/policy"
)

// Command returns "stagger demo".
func Command() *cobra.Command {
	var (
		file string
		seed uint64
		all  bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a bad day for five clients: no retries, a loop, gRPC's own retries, stagger",
		Long: `Play a bad day for five clients: no retries, a loop, gRPC's own retries, stagger.

The clients make the same calls at the same times, each to its own servers, in virtual
time. Clients and servers are a model; the code that decides is the interceptor's own.
"stagger explain" shows single calls, attempt by attempt.`,
		Example: `  stagger demo
  stagger demo --all                   all figures, and requests over time
  stagger demo --seed 7                the calls come at other times
  stagger demo --policy my/retry.yaml  stagger follows your policies for acme.orders.v1.OrderService`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := policy.Parse("retry.yaml", policyFile)
			if file != "" {
				set, err = policy.Load(file)
			}
			if err != nil {
				return err
			}
			return showDay(cmd.Context(), set, seed, all, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`file` with the policies that stagger follows (default: the README's retry.yaml, built in)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that seeds the times of the calls")
	cmd.Flags().BoolVar(&all, "all", false, "also show all figures, and requests over time")
	return cmd
}

var (
	//go:embed day.yaml
	dayFile []byte

	// The README shows this file.
	//go:embed retry.yaml
	policyFile []byte
)

const stagger = "stagger"

// The fleets and services of day.yaml.
const (
	reads = iota
	payments
	chain
)

const (
	orders = iota
	shop
	cart
	stock
)

// printf prints; a closed output is not an error.
func printf(out io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(out, format, values...) }

// playDay plays the day for the clients of its file, and for one that follows a policy.
func playDay(ctx context.Context, set *policy.Set, seed uint64) (*sim.Result, error) {
	day, err := sim.Parse("day.yaml", dayFile, nil)
	if err != nil {
		return nil, err
	}
	if call := &day.Fleets[payments].Calls[0]; set.Lookup(call.Method) == nil {
		call.Policy = sim.NoPolicy // as the interceptor does: one attempt. The other variants name their policies themselves
	}
	if day, err = day.With(stagger, set, ""); err != nil {
		return nil, err
	}
	return day.Run(ctx, sim.Options{Seed: seed})
}

const about = `Five kinds of clients make the same calls in virtual time (seed %d). They have run
for a minute when the first failure begins; a request takes 15 ms, one of a
hundred more than 80 ms; a call's deadline is 2 s.

  no retries      one attempt a call
  retry loop      4 attempts of 200 ms, one right after the other
  gRPC            its own retries: 4 attempts, after 100, 200 and 400 ms ± 20 %%
  gRPC throttled  the same, with retryThrottling {maxTokens: 100, tokenRatio: 1}
  stagger         the README's retry.yaml: 4 attempts of 400 ms, full jitter

`

const failuresNote = `rolling restart: each of four backends is down for 2 s in turn. one fails: it refuses
all requests for 20 s. one hangs: it never responds. outage: all four fail for 10 s.
chain: service A calls B, B calls C, and C fails for 10 s. payment: CreateOrder, which
isn't declared idempotent, over the whole day; what the others send twice may be paid
twice. "stagger demo --all" shows more, "stagger explain" shows single calls.
`

// showDay plays the day, and shows what distinguishes the clients in each trouble; and then all figures, if all is true.
func showDay(ctx context.Context, set *policy.Set, seed uint64, all bool, out io.Writer) error {
	r, err := playDay(ctx, set, seed)
	if err != nil {
		return err
	}
	printf(out, about, r.Seed)
	t := report.Table{Title: "Six failures, five clients", Columns: []string{
		"client", "rolling restart:\nsuccess %", "one fails:\nsuccess %", "one hangs:\nsuccess %",
		"outage: requests\nfor each call", "chain: requests\nat C for each call", "requests for\neach payment",
	}}
	for i := range r.Runs {
		run := &r.Runs[i]
		in := func(label string) phase { return phaseOf(r, run, label) }
		t.Rows = append(t.Rows, []string{
			run.Name, percent(in("rolling restart")), percent(in("one fails")), percent(in("one hangs")),
			perCall(in("outage"), orders, reads, payments), perCall(in("chain outage"), stock, chain),
			fmt.Sprintf("%.2f", run.Fleets[payments].PerCall),
		})
	}
	printf(out, "%s\n%s", terminal.Table(t, terminal.StyleOf(out), stagger), failuresNote)
	if all {
		printf(out, "\n")
		simulate.Write(out, terminal.StyleOf(out), r)
	}
	return nil
}

// phase counts what happened in a phase, by fleet and by service.
type phase struct {
	begun, succeeded [stock + 1]int // calls of a fleet that began in it
	requests         [stock + 1]int // arrivals at a service
}

// percent returns how many of the reads succeeded.
func percent(p phase) string {
	return fmt.Sprintf("%.1f", 100*sim.Ratio(p.succeeded[reads], p.begun[reads]))
}

// perCall returns the requests at a service for each call of fleets.
func perCall(p phase, service int, fleets ...int) string {
	calls := 0
	for _, fleet := range fleets {
		calls += p.begun[fleet]
	}
	return fmt.Sprintf("%.2f", sim.Ratio(p.requests[service], calls))
}

// phaseOf counts the calls that began, and the requests that arrived, in the phases with this label.
func phaseOf(r *sim.Result, run *sim.Played, label string) phase {
	var (
		counts phase
		begin  time.Duration
	)
	for _, p := range r.Scenario.Phases {
		end := begin + p.Length
		if strings.HasPrefix(p.Name, label+":") {
			for i := int(begin / r.Bucket); i < int(end/r.Bucket); i++ {
				for k := range run.Fleets {
					counts.begun[k] += run.Fleets[k].Begun[i]
					counts.succeeded[k] += run.Fleets[k].Succeeded[i]
				}
				for k := range run.Services {
					counts.requests[k] += run.Services[k].Arrivals[i]
				}
			}
		}
		begin = end
	}
	return counts
}
