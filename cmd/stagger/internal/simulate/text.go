// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"strings"

	"github.com/guptarohit/asciigraph"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stagger-go/stagger/internal/sim"
)

// writeResult prints tables and small charts.
func writeResult(w io.Writer, r *sim.Result) {
	s := r.Scenario
	printf(w, "%s\n", s.Title)
	if s.About != "" {
		for line := range strings.Lines(text.WrapSoft(s.About, width)) {
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

const (
	chartWidth  = 80
	chartHeight = 6
	chartCut    = 3 // times the capacity, beyond which a chart is cut
)

// chart draws the arrivals at a service over time against its capacity.
func chart(w io.Writer, r *sim.Result, run, service int) {
	p := &r.Runs[run]
	s := &p.Services[service]
	limit := capacity(&r.Scenario.Services[service])
	arrivals := make([]float64, len(s.Arrivals))
	for i, n := range s.Arrivals {
		arrivals[i] = min(float64(n)/r.Bucket.Seconds(), chartCut*limit)
	}
	level := make([]float64, len(arrivals))
	for i := range level {
		level[i] = limit
	}
	if len(arrivals) < 2 {
		return // nothing that could be drawn
	}
	printf(w, "\n%s: requests per second at %s, and its capacity (┄), over %v\n%s\n", p.Name, s.Name, r.Scenario.Length(),
		asciigraph.PlotMany([][]float64{level, arrivals}, asciigraph.Height(chartHeight), asciigraph.Width(chartWidth),
			asciigraph.LowerBound(0), asciigraph.Precision(0),
			asciigraph.SeriesChars(asciigraph.CreateCharSet("┄"), asciigraph.DefaultCharSet)))
}

func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }
