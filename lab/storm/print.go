// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

// printOutcome shows the table of a storm, in Markdown or for a terminal.
func printOutcome(w io.Writer, o *outcome, markdown bool) {
	if markdown {
		printf(w, "### %s: %s\n\n%s\n\n%s\n\nTarget: %s\n\n", o.storm.Title, o.storm.About, o.storm.terms(), rendered(o.table(), true), o.storm.target)
		return
	}
	printf(w, "%s: %s\n%s\n%s\ntarget: %s\n\n", o.storm.Title, o.storm.About, o.storm.terms(), rendered(o.table(), false), o.storm.target)
}

// printVerdicts shows what was missed or could not be judged, and counts the rest.
func printVerdicts(w io.Writer, outcomes []*outcome, markdown bool) {
	all := verdictTable(outcomes)
	bad := report.Table{Columns: all.Columns}
	for _, row := range all.Rows {
		if row[len(row)-2] != string(pass) {
			bad.Rows = append(bad.Rows, row)
		}
	}
	printf(w, "%d of %d claims about stagger hold, from wherever its calls come.\n\n", len(all.Rows)-len(bad.Rows), len(all.Rows))
	if len(bad.Rows) > 0 {
		printf(w, "%s\n\n", rendered(bad, markdown))
	}
}

// printWorse shows what stagger does worse than a peer.
func printWorse(w io.Writer, outcomes []*outcome, markdown bool) {
	if list := worseTable(outcomes); len(list.Rows) > 0 {
		printf(w, "What stagger does worse than a peer. %s\n\n%s\n\n", worseText, rendered(list, markdown))
	}
}

// rendered returns a table without its title.
func rendered(t report.Table, markdown bool) string {
	if markdown {
		return terminal.Markdown(t)
	}
	t.Title = ""
	return terminal.Table(t, terminal.Style{}, "")
}

// printf prints; a closed output is not an error.
func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }

// warnLate prints a warning if the machine could not keep up.
func warnLate(w io.Writer, o *outcome) {
	for i, x := range o.results {
		if x.Late > outage.TooLate {
			printf(w, "this machine could not keep up: 1 %% of the calls of %s began %v or more after their time\n",
				o.clients[i].name, x.Late.Round(time.Millisecond))
		}
	}
}
