// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo shows the effect of retries on a service in trouble: real clients and servers in one process, a scripted day,
// and measurements.
package demo

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/outage"
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
		Short: "Play a bad day against four clients: no retries, two usual kinds of retries, stagger",
		Long: `Play a bad day against four clients: no retries, two usual kinds of retries, stagger.

The clients make the same calls at the same times, each to its own four backends, all in
this process. It takes about 20 seconds. Then it prints the measurements, and how stagger
decided about single calls.`,
		Example: `  stagger demo
  stagger demo --seed 7                the calls come at other times
  stagger demo --policy my/retry.yaml  stagger follows your policies for acme.orders.v1.OrderService
  stagger demo | tee demo.txt          plain text`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := load(file)
			if err != nil {
				return err
			}
			return run(cmd.Context(), set, seed, newScreen(cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`file` with the policies that stagger follows (default: examples/orders/retry.yaml, built in)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that seeds the times of the calls")
	return cmd
}

func load(file string) (*policy.Set, error) {
	if file == "" {
		return policy.Parse(orders.File, orders.Policy)
	}
	return policy.Load(file)
}

// run runs the whole demo.
func run(ctx context.Context, set *policy.Set, seed uint64, out screen) error {
	if _, err := showDay(ctx, newDay(workers), set, seed, out); err != nil {
		return err
	}
	return showStories(ctx, set, out)
}

// showDay plays the day and shows the measurements.
func showDay(ctx context.Context, d day, set *policy.Set, seed uint64, out screen) ([]result, error) {
	var why reasons
	clients, err := newClients(set, why.observer())
	if err != nil {
		return nil, err
	}
	calls := d.calls(seed)
	introduce(out, d, len(calls), clients, seed)
	shown := newProgress(out, len(clients)*len(calls))
	o := outage.Outage{Scenario: d.Scenario, Calls: calls, OnPhase: shown.enter, OnEnd: shown.end}
	for _, c := range clients {
		o.Clients = append(o.Clients, c.played())
	}
	records, err := o.Play(ctx)
	shown.close()
	if err != nil {
		return nil, err
	}
	results := make([]result, len(clients))
	for i := range clients {
		results[i] = newResult(d, clients[i].name, &records[i])
	}
	printResults(out, results)
	printCharts(out, d, clients, records)
	out.printf("\nWhy calls of stagger that failed got no other attempt:\n%s", why.String())
	warnLate(out, results)
	return results, nil
}

func introduce(out screen, d day, calls int, clients []client, seed uint64) {
	s := &d.Services[0]
	out.printf("Four clients make the same %d calls in %g s (seed %d), each to %d backends of its own that\n"+
		"serve %.0f requests/s together. Normal load is %.0f %% of that. A call ends after %g s at the latest.\n"+
		"%.0f %% of the calls create an order, the others read one.\n\n",
		calls, d.Length().Seconds(), seed, s.Backends, s.Capacity(), 100*d.Phases[0].Load, callTimeout.Seconds(), 100*orderShare)
	for _, c := range clients {
		out.printf("  %-12s %s\n", c.name, c.what)
	}
	out.printf("\n")
}

// warnLate prints a warning if the machine could not keep up.
func warnLate(out screen, results []result) {
	worst := slices.MaxFunc(results, func(a, b result) int { return int(a.Late - b.Late) }).Late
	if worst > outage.TooLate {
		out.printf("\nThis machine could not keep up: 1 %% of the calls began %v or more after their time.\n"+
			"The numbers above partly measure the machine; close other programs and try again.\n", worst.Round(time.Millisecond))
	}
}

// day is the same script for every client. A phase's name is its name in the tables, a colon, and a description; a phase
// without a colon is not in the tables.
type day struct{ *sim.Scenario }

const (
	workers     = 5 // of each backend
	callTimeout = time.Second
)

// newDay returns the scripted day, with a capacity of 200 requests per second for each worker of a backend. A backend's
// queue holds 1.5 s of work, more than any call waits.
func newDay(workers int) day {
	const calm, normal = "calm", 0.55
	service := sim.Service{
		Name: "orders", Backends: 4, Workers: workers, Queue: 75 * workers, Time: &sim.Distribution{A: 20 * time.Millisecond}, Refuse: codes.ResourceExhausted,
	}
	down := func(backends ...int) []sim.Fault {
		return []sim.Fault{{Service: service.Name, Backends: backends, Down: true, Code: codes.Unavailable}}
	}
	return day{&sim.Scenario{
		Title:    "the day",
		Bucket:   200 * time.Millisecond,
		Recovery: sim.Recovery{Success: 0.99, Window: 250 * time.Millisecond},
		Services: []sim.Service{service},
		Fleets: []sim.Fleet{{
			Name: "users", Clients: 1, Rate: service.Capacity(),
			Calls: []sim.Call{{Service: service.Name, Method: orders.GetOrder, Deadline: callTimeout}},
		}},
		Phases: []sim.Phase{
			{Name: calm, Length: 3 * time.Second, Load: normal},
			{Name: "blip: every backend fails", Length: 150 * time.Millisecond, Load: normal, Faults: down()},
			{Name: calm, Length: 1250 * time.Millisecond, Load: normal},
			{Name: "one of four: one backend fails", Length: 3 * time.Second, Load: normal, Faults: down(0)},
			{Name: calm, Length: 600 * time.Millisecond, Load: normal},
			{Name: "outage: every backend fails", Length: 4 * time.Second, Load: normal, Faults: down()},
			{Name: calm, Length: time.Second, Load: normal},
			{Name: "pulse: 1.5 times the capacity", Length: 2500 * time.Millisecond, Load: 1.5},
			{Name: "after the pulse: normal load again", Kind: sim.KindAfter, Length: 2500 * time.Millisecond, Load: normal},
		},
	}}
}

// span returns when a phase in the tables begins and ends, from the day's start.
func (d day) span(label string) (from, to time.Duration) {
	for _, p := range d.Phases {
		to = from + p.Length
		if strings.HasPrefix(p.Name, label+":") {
			return from, to
		}
		from = to
	}
	return 0, 0
}

// labels returns the phases in the tables.
func (d day) labels() []string {
	var list []string
	for _, p := range d.Phases {
		if label, _, ok := strings.Cut(p.Name, ":"); ok {
			list = append(list, label)
		}
	}
	return list
}

// orderShare is the part of the calls that create an order, which is not idempotent.
const orderShare = 0.02

// calls draws the calls of the day. The same seed gives the same calls.
func (d day) calls(seed uint64) []outage.Call {
	list := outage.Arrivals(d.Scenario, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range list {
		if random.Float64() < orderShare {
			list[i].Method = orders.CreateOrder
		}
	}
	return list
}
