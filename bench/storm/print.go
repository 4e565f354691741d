// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stagger-go/stagger/internal/report"
)

// printTally shows the table of a storm, in Markdown or for a terminal.
func printTally(w io.Writer, t *tally, markdown bool) {
	if markdown {
		printf(w, "### %s: %s\n\n%s\n\n%s\n\nTarget: %s\n\n", t.storm.name, t.storm.what, t.storm.terms(), rendered(t.table(), true), t.storm.target)
		return
	}
	printf(w, "%s: %s\n%s\n%s\ntarget: %s\n\n", t.storm.name, t.storm.what, t.storm.terms(), rendered(t.table(), false), t.storm.target)
}

// printVerdicts shows what was missed or could not be judged, and counts the rest.
func printVerdicts(w io.Writer, tallies []*tally, markdown bool) {
	all := verdictTable(tallies)
	bad := report.Table{Columns: all.Columns}
	for _, row := range all.Rows {
		if row[len(row)-2] != string(pass) {
			bad.Rows = append(bad.Rows, row)
		}
	}
	printf(w, "%d of %d claims about stagger hold, from any number of connections.\n\n", len(all.Rows)-len(bad.Rows), len(all.Rows))
	if len(bad.Rows) > 0 {
		printf(w, "%s\n\n", rendered(bad, markdown))
	}
}

// printWorse shows what stagger does worse than a peer.
func printWorse(w io.Writer, tallies []*tally, markdown bool) {
	if list := worseTable(tallies); len(list.Rows) > 0 {
		printf(w, "What stagger does worse than a peer. %s\n\n%s\n\n", worseText, rendered(list, markdown))
	}
}

const longestFigure = 6 // bytes; columns of nothing longer are aligned to the right

func rendered(list report.Table, markdown bool) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := make(table.Row, len(list.Columns))
	aligned := make([]table.ColumnConfig, len(list.Columns))
	for i, name := range list.Columns {
		header[i] = name
		aligned[i] = table.ColumnConfig{Number: i + 1, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}
		if i > 0 && !slices.ContainsFunc(list.Rows, func(row []string) bool { return len(row[i]) > longestFigure }) {
			aligned[i].Align, aligned[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(aligned)
	for _, cells := range list.Rows {
		row := make(table.Row, len(cells))
		for i, cell := range cells {
			row[i] = cell
		}
		t.AppendRow(row)
	}
	if markdown {
		return t.RenderMarkdown()
	}
	return t.Render()
}

// printf prints; that nobody reads any more is no error of the storm.
func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }

// warnLate says so if the machine could not keep up.
func warnLate(w io.Writer, t *tally) {
	for i, x := range t.results {
		if x.late > tooLate {
			printf(w, "this machine could not keep up: 1 %% of the calls of %s began %v or more after their time\n",
				t.who[i].name, x.late.Round(time.Millisecond))
		}
	}
}
