// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// run is the whole demo.
func run(ctx context.Context, set *policy.Set, seed uint64, out screen) error {
	if _, err := showDay(ctx, newDay(workers), set, seed, out); err != nil {
		return err
	}
	return tell(ctx, set, out)
}

// showDay plays the day and shows what was measured.
func showDay(ctx context.Context, d day, set *policy.Set, seed uint64, out screen) ([]result, error) {
	var why reasons
	who, err := contenders(set, why.observer()) //nolint:contextcheck // it only makes clients
	if err != nil {
		return nil, err
	}
	calls := schedule(d, seed)
	introduce(out, d, calls, who, seed)
	show := newProgress(out, who, len(calls))
	records, err := play(ctx, d, calls, who, show)
	show.close()
	if err != nil {
		return nil, err
	}
	results := make([]result, len(who))
	for i := range who {
		results[i] = measure(d, who[i].name, &records[i])
	}
	printResults(out, d, results)
	printCharts(out, d, who, records)
	out.printf("\nWhy calls of stagger that failed got no other attempt:\n%s", why.String())
	warnLate(out, calls, records)
	return results, nil
}

func introduce(out screen, d day, calls []arrival, who []contender, seed uint64) {
	out.printf("Four clients make the same %d calls in %g s (seed %d), each to %d backends of its own that\n"+
		"serve %.0f requests/s together. Normal load is %.0f %% of that. A call ends after %g s at the latest.\n"+
		"%.0f %% of the calls create an order, the others read one.\n\n",
		len(calls), d.length().Seconds(), seed, d.fleet.backends, d.fleet.capacity(),
		100*d.phases[0].load, callTimeout.Seconds(), 100*orderShare)
	for _, c := range who {
		out.printf("  %-12s %s\n", c.name, c.what)
	}
	out.printf("\n")
}

// late is from when on a call that began late speaks of the machine and not of the clients.
const late = 50 * time.Millisecond

// warnLate says so if the machine could not keep up.
func warnLate(out screen, calls []arrival, records []record) {
	behind := make([]call, 0, len(records)*len(calls))
	for i, due := range calls {
		for _, r := range records {
			behind = append(behind, call{took: r.calls[i].at - due.at})
		}
	}
	if worst := quantile(behind, 0.99); worst > late {
		out.printf("\nThis machine could not keep up: 1 %% of the calls began %v or more after their time.\n"+
			"The numbers above are partly about the machine; close other programs and try again.\n", worst.Round(time.Millisecond))
	}
}
