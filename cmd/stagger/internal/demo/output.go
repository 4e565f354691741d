// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/outage"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
)

// screen is where the demo is shown.
type screen struct {
	io.Writer

	style terminal.Style
}

func newScreen(w io.Writer) screen { return screen{w, terminal.StyleOf(w)} }

// printf prints; that nobody reads any more is no error of the demo.
func (s screen) printf(format string, values ...any) { _, _ = fmt.Fprintf(s, format, values...) }

// printResults shows what was measured: the whole day, and the success in its phases.
func printResults(out screen, d day, results []result) {
	whole := report.Table{Title: "The whole day", Columns: []string{
		"client", "success\n%", "requests\nper call", "in the\noutage", "peak arrivals\n/ capacity",
		"time to\nrecover, s", "p99\nms", "orders made\ntwice",
	}}
	phases := report.Table{Title: "Success by phase, %", Columns: append([]string{"client"}, d.labels()...)}
	for _, r := range results {
		whole.Rows = append(whole.Rows, []string{
			r.name, percent(r.Success), fmt.Sprintf("%.2f", r.PerCall), fmt.Sprintf("%.2f", r.perOutage), fmt.Sprintf("%.1f", r.Peak),
			r.Recovery.String(), strconv.FormatInt(r.P99.Round(time.Millisecond).Milliseconds(), 10), strconv.Itoa(r.twice),
		})
		row := append(make([]string, 0, len(phases.Columns)), r.name)
		for _, label := range d.labels() {
			row = append(row, percent(r.phases[label]))
		}
		phases.Rows = append(phases.Rows, row)
	}
	out.printf("%s\n%s\n", terminal.Table(whole, out.style, stagger), footnote)
	out.printf("\n%s\n%s\n", terminal.Table(phases, out.style, stagger), phasesNote)
}

const footnote = `requests: what arrived at the servers. peak: in 200 ms. time to recover: after the pulse, until 99 %
of the calls of 250 ms succeed. p99: of all calls, failed ones too. orders made twice: CreateOrder was
sent again though the servers did, or still do, what they were sent first.`

const phasesNote = `Of the calls that began in the phase. CreateOrder is not repeated by stagger, since
nobody has declared it safe.`

func percent(part float64) string { return fmt.Sprintf("%.1f", 100*part) }

// printCharts shows the arrivals at the servers over the day, one chart for each client, one below
// the other so that their times are in line.
func printCharts(out screen, d day, clients []client, records []outage.Record) {
	capacity := d.Services[0].Capacity()
	out.printf("\nRequests/s at the servers over the %g s; dotted: their capacity; cut off at %.0f\n", d.Length().Seconds(), terminal.ChartCut*capacity)
	for i, c := range clients {
		out.printf("%s\n%s\n", c.name, terminal.Chart(records[i].Series(0).Requests, capacity, 0, out.style, i))
	}
	out.printf("%s\n", timeline(d))
}

// timeline names the phases below the charts, each where it begins.
func timeline(d day) string {
	var line strings.Builder
	for _, label := range d.labels() {
		from, _ := d.span(label)
		column := terminal.ChartMargin + int(from/d.Bucket)
		line.WriteString(strings.Repeat(" ", max(column-len([]rune(line.String())), 1)))
		line.WriteString("└" + label)
	}
	return line.String()
}
