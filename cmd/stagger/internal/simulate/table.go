// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

const variantColumn = "variant"

// fleetTable names the fleets only where there are several.
func fleetTable(r *sim.Result) report.Table {
	t := report.Table{Title: callsTitle, Columns: []string{variantColumn}}
	several := len(r.Scenario.Fleets) > 1
	if several {
		t.Columns = append(t.Columns, "fleet")
	}
	t.Columns = append(t.Columns, "success %", "requests", "time to recover, s", "p50 ms", "p99 ms", "p999 ms", "why")
	for _, p := range r.Runs {
		for _, f := range p.Fleets {
			row := []string{p.Name}
			if several {
				row = append(row, f.Name)
			}
			t.Rows = append(t.Rows, append(row,
				fmt.Sprintf("%.2f", 100*f.Success), fmt.Sprintf("%.2f", f.PerCall), f.Recovery.String(),
				millis(f.P50), millis(f.P99), millis(f.P999), why(f)))
		}
	}
	return t
}

// why lists the reasons of calls that failed, the most frequent first.
func why(f sim.FleetResult) string {
	var reasons []policy.Reason
	for reason := range f.Reasons {
		if reason != policy.ReasonSucceeded {
			reasons = append(reasons, reason)
		}
	}
	slices.SortFunc(reasons, func(a, b policy.Reason) int {
		return cmp.Or(cmp.Compare(f.Reasons[b], f.Reasons[a]), cmp.Compare(a, b))
	})
	parts := make([]string, 0, len(reasons))
	for _, reason := range reasons[:min(2, len(reasons))] {
		parts = append(parts, fmt.Sprintf("%s %.1f %%", reason, 100*float64(f.Reasons[reason])/float64(f.Calls)))
	}
	return strings.Join(parts, ", ")
}

func serviceTable(r *sim.Result) report.Table {
	t := report.Table{
		Title:   "Services",
		Columns: []string{variantColumn, "service", "per call", "peak per s", "capacity per s", "refused", "wasted %"},
	}
	for _, p := range r.Runs {
		for i, s := range p.Services {
			t.Rows = append(t.Rows, []string{
				p.Name, s.Name, fmt.Sprintf("%.2f", s.PerCall), fmt.Sprintf("%.0f", s.Peak),
				fmt.Sprintf("%.0f", r.Scenario.Services[i].Capacity()), strconv.Itoa(s.Refused), fmt.Sprintf("%.1f", 100*share(s.Wasted, s.Served)),
			})
		}
	}
	return t
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func millis(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10)
}
