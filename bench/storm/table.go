// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// columns after the client's name.
var columns = []string{
	"success\n%", "goodput\ncalls/s", "time to\nrecover, s", "peak arrivals\n/ capacity", "requests\nper call",
	"p50\nms", "p99\nms", "p999\nms", "target",
}

const legend = `success, goodput: of the calls that began after the lead-in. time to recover: after the trouble, until
99 % of the calls of 250 ms succeed. peak arrivals: at the servers, in 200 ms. requests per call: what
arrived at the servers. p50, p99, p999: of all calls, failed ones too. target: reached (PASS) or not
(MISS); VOID if this machine was too slow to say.
`

// printReport shows the table of a storm, in Markdown or for a terminal.
func printReport(w io.Writer, r report, markdown bool) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := append(make(table.Row, 0, 1+len(columns)), "client")
	aligned := make([]table.ColumnConfig, 0, len(columns))
	for i, name := range columns {
		header = append(header, name)
		aligned = append(aligned, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(aligned)
	for i, x := range r.results {
		t.AppendRow(table.Row{
			r.names[i], fmt.Sprintf("%.2f", 100*x.success), fmt.Sprintf("%.0f", x.goodput), x.recovery,
			fmt.Sprintf("%.1f", x.peak), fmt.Sprintf("%.2f", x.perCall),
			millis(x.p50), millis(x.p99), millis(x.p999), string(x.judgement),
		})
	}
	if markdown {
		printf(w, "### %s: %s\n\n%s\n\nTarget: %s\n\n", r.storm.name, r.storm.what, t.RenderMarkdown(), r.storm.target)
		return
	}
	printf(w, "%s: %s\n%s\ntarget: %s\n\n", r.storm.name, r.storm.what, t.Render(), r.storm.target)
}

func millis(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10)
}

// printf prints; that nobody reads any more is no error of the storm.
func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }

// warnLate says so if the machine could not keep up.
func warnLate(w io.Writer, r report) {
	for i, x := range r.results {
		if x.late > tooLate {
			printf(w, "this machine could not keep up: 1 %% of the calls of %s began %v or more after their time\n",
				r.names[i], x.late.Round(time.Millisecond))
		}
	}
}
