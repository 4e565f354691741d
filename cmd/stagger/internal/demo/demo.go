// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/policy"
)

// run is the whole demo.
func run(ctx context.Context, set *policy.Set, seed uint64, out screen) error {
	if _, err := showDay(ctx, newDay(workers), set, seed, out); err != nil {
		return err
	}
	return showStories(ctx, set, out)
}

// showDay plays the day and shows what was measured.
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

// warnLate says so if the machine could not keep up.
func warnLate(out screen, results []result) {
	worst := slices.MaxFunc(results, func(a, b result) int { return int(a.Late - b.Late) }).Late
	if worst > outage.TooLate {
		out.printf("\nThis machine could not keep up: 1 %% of the calls began %v or more after their time.\n"+
			"The numbers above are partly about the machine; close other programs and try again.\n", worst.Round(time.Millisecond))
	}
}
