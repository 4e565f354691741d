// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/policy"
)

// Write prints tables and small charts of a result.
func Write(w io.Writer, style terminal.Style, r *sim.Result) {
	s := r.Scenario
	printf(w, "%s\n", cli.Name(s.Title))
	if s.About != "" {
		for line := range strings.Lines(terminal.Wrap(s.About, width)) {
			printf(w, "%s\n", cli.Name(strings.TrimSpace(line)))
		}
	}
	printf(w, "\n%s\n", render(style, fleetTable(r)))
	printf(w, "%s\n\n%s\n%s\n", legend, render(style, serviceTable(r)), serviceLegend)
	for i := range r.Runs {
		for k := range s.Services {
			chart(w, style, r, i, k)
		}
	}
}

const width = 80

const legend = `OK: calls that succeed. per call: attempts, without those of services. to
recover: after the trouble. p50, p99, p999: of all calls, including failed ones.
why: what kept the failed calls from another attempt.`

const serviceLegend = `per call: requests for each call of a user. peak: in 200 ms. wasted: part of the
work done for callers that had left.`

const chartColumns = 72

// chart draws the arrivals at a service over time against its capacity.
func chart(w io.Writer, style terminal.Style, r *sim.Result, run, service int) {
	p := &r.Runs[run]
	s := &p.Services[service]
	if len(s.Arrivals) < 2 {
		return // nothing to draw
	}
	arrivals := make([]float64, len(s.Arrivals))
	for i, n := range s.Arrivals {
		arrivals[i] = float64(n) / r.Bucket.Seconds()
	}
	printf(w, "\n%s: requests/s at %s and its capacity ┄ over %v\n%s\n", cli.Name(p.Name), document.Printable(s.Name), r.Scenario.Length(),
		terminal.Chart(arrivals, r.Scenario.Services[service].Capacity(), chartColumns, style, run))
}

// render returns a table without its title.
func render(style terminal.Style, t report.Table) string {
	t.Title = ""
	for _, row := range t.Rows {
		for i := range row {
			row[i] = document.Printable(row[i])
		}
	}
	return terminal.Table(t, terminal.Style{Columns: style.Columns}, "")
}

func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }

const variantColumn = "variant"

// fleetTable names the fleets only if there are several.
func fleetTable(r *sim.Result) report.Table {
	t := report.Table{Title: "Calls", Columns: []string{variantColumn}}
	several := len(r.Scenario.Fleets) > 1
	if several {
		t.Columns = append(t.Columns, "fleet")
	}
	t.Columns = append(t.Columns, "OK %", "per call", "to recover, s", "p50 ms", "p99 ms", "p999 ms", "why")
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

// why returns the reasons of failed calls, the most frequent first.
func why(f sim.FleetResult) string {
	reasons := slices.DeleteFunc(report.MostFrequent(f.Reasons), func(r policy.Reason) bool { return r == policy.ReasonSucceeded })
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
				fmt.Sprintf("%.0f", r.Scenario.Services[i].Capacity()), strconv.Itoa(s.Refused), fmt.Sprintf("%.1f", 100*sim.Ratio(s.Wasted, s.Served)),
			})
		}
	}
	return t
}

func millis(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10)
}
