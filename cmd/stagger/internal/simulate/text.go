// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"strings"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// writeResult prints tables and small charts.
func writeResult(w io.Writer, r *sim.Result) {
	s := r.Scenario
	printf(w, "%s\n", s.Title)
	if s.About != "" {
		for line := range strings.Lines(terminal.Wrap(s.About, width)) {
			printf(w, "%s\n", strings.TrimSpace(line))
		}
	}
	printf(w, "\n%s\n", render(fleetTable(r)))
	printf(w, "%s\n\n%s\n%s\n", legend, render(serviceTable(r)), serviceLegend)
	for i := range r.Runs {
		for k := range s.Services {
			chart(w, r, i, k)
		}
	}
}

const width = 100

const legend = `requests: attempts of a call, those of services not counted. time to recover: after the trouble. p50, p99, p999: of
all calls, failed ones too. why: how calls ended that failed, by what kept them from another attempt.`

const serviceLegend = `per call: requests for each call of a user. peak: in 200 ms. wasted: of the work done, for callers who had left.`

const chartColumns = 80

// chart draws the arrivals at a service over time against its capacity.
func chart(w io.Writer, r *sim.Result, run, service int) {
	p := &r.Runs[run]
	s := &p.Services[service]
	if len(s.Arrivals) < 2 {
		return // nothing that could be drawn
	}
	arrivals := make([]float64, len(s.Arrivals))
	for i, n := range s.Arrivals {
		arrivals[i] = float64(n) / r.Bucket.Seconds()
	}
	printf(w, "\n%s: requests per second at %s, and its capacity (┄), over %v\n%s\n", p.Name, s.Name, r.Scenario.Length(),
		terminal.Chart(arrivals, r.Scenario.Services[service].Capacity(), chartColumns, terminal.StyleOf(w), run))
}

// render is a table without its title.
func render(t report.Table) string {
	t.Title = ""
	return terminal.Table(t, terminal.Style{}, "")
}

func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }
