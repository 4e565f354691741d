// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// screen is the output of the demo.
type screen struct {
	io.Writer

	style terminal.Style
}

func newScreen(w io.Writer) screen { return screen{w, terminal.StyleOf(w)} }

// printf prints; a closed output is not an error.
func (s screen) printf(format string, values ...any) { _, _ = fmt.Fprintf(s, format, values...) }

// printResults shows the measurements: first those that distinguish the clients in each trouble, then all numbers.
func printResults(out screen, results []result) {
	troubles := report.Table{Title: "Four troubles, four clients", Columns: []string{
		"client", "blip:\nsuccess %", "one of four fails:\nsuccess %", "outage: requests\nfor each call",
		"pulse: back to\nnormal after, s", "orders made\ntwice",
	}}
	whole := report.Table{Title: "The whole day", Columns: []string{
		"client", "success\n%", "in the\noutage", "in the\npulse", "after\nit", "requests\nper call", "peak arrivals\n/ capacity", "p99\nms",
	}}
	for _, r := range results {
		troubles.Rows = append(troubles.Rows, []string{
			r.name, percent(r.phases["blip"]), percent(r.phases["one of four"]), fmt.Sprintf("%.2f", r.perOutage),
			r.Recovery.String(), strconv.Itoa(r.twice),
		})
		whole.Rows = append(whole.Rows, []string{
			r.name, percent(r.Success), percent(r.phases["outage"]), percent(r.phases["pulse"]), percent(r.phases["after the pulse"]),
			fmt.Sprintf("%.2f", r.PerCall), fmt.Sprintf("%.1f", r.Peak), strconv.FormatInt(r.P99.Round(time.Millisecond).Milliseconds(), 10),
		})
	}
	out.printf("%s\n%s\n", terminal.Table(troubles, out.style, stagger), troublesNote)
	out.printf("\n%s\n%s\n", terminal.Table(whole, out.style, stagger), wholeNote)
}

const troublesNote = `requests: arrivals at the servers. pulse: 1.5 times the capacity, until 99 % of the calls of
250 ms succeed again. made twice: CreateOrder was retried although the servers carried out, or still
carry out, the first request; stagger doesn't retry it, since it isn't declared idempotent.`

const wholeNote = `Success of all calls, and of those that began in the outage, in the pulse, in the 2.5 s after it.
peak: in 200 ms. p99: of all calls, failed ones included.`

func percent(part float64) string { return fmt.Sprintf("%.1f", 100*part) }

// printCharts shows the arrivals at the servers over the day, one chart per client, with their times aligned.
func printCharts(out screen, d day, clients []client, records []outage.Record) {
	capacity := d.Services[0].Capacity()
	out.printf("\nRequests/s at the servers over the %g s; dotted: their capacity; cut off at %.0f\n", d.Length().Seconds(), terminal.ChartCut*capacity)
	for i, c := range clients {
		out.printf("%s\n%s\n", c.name, terminal.Chart(records[i].Series(0).Requests, capacity, 0, out.style, i))
	}
	out.printf("%s\n", timeline(d))
}

// timeline names the phases below the charts, each at its beginning.
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

// progress shows the progress of the day: a bar on a terminal, else a line for each phase.
type progress struct {
	out   screen
	bar   *terminal.Progress // nil if out is not a
	calls int                // of all clients
	ended atomic.Int64
}

func newProgress(out screen, calls int) *progress {
	return &progress{out: out, bar: terminal.NewProgress(out.Writer, ""), calls: calls}
}

func (p *progress) enter(begin time.Duration, phase *sim.Phase) {
	headline := fmt.Sprintf("  %5.2f s  %s", begin.Seconds(), phase.Name)
	if p.bar == nil {
		p.out.printf("%s\n", headline)
	}
	p.bar.Title(headline)
}

func (p *progress) end(int) { p.bar.Set(float64(p.ended.Add(1)) / float64(p.calls)) }

func (p *progress) close() {
	p.bar.Clear()
	p.out.printf("\n")
}
