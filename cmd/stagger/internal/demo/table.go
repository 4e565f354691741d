// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// printResults shows what was measured: the whole day, and the success in its phases.
func printResults(out screen, d day, results []result) {
	whole := newTable(out, "The whole day")
	whole.AppendHeader(table.Row{
		"client", "success\n%", "requests\nper call", "in the\noutage", "peak arrivals\n/ capacity",
		"time to\nrecover, s", "p99\nms", "orders made\ntwice",
	})
	phases := newTable(out, "Success by phase, %")
	header := append(make(table.Row, 0, 1+len(d.labels())), "client")
	for _, label := range d.labels() {
		header = append(header, label)
	}
	phases.AppendHeader(header)
	for _, r := range results {
		whole.AppendRow(table.Row{
			r.name, percent(r.success), fmt.Sprintf("%.2f", r.perCall), fmt.Sprintf("%.2f", r.outage),
			fmt.Sprintf("%.1f", r.peak), recovered(r), r.p99.Round(time.Millisecond).Milliseconds(), r.twice,
		})
		row := append(make(table.Row, 0, len(header)), r.name)
		for _, label := range d.labels() {
			row = append(row, percent(r.phases[label]))
		}
		phases.AppendRow(row)
	}
	alignRight(whole, 8)
	alignRight(phases, 1+len(d.labels()))
	out.printf("%s\n%s\n", whole.Render(), footnote)
	out.printf("\n%s\n%s\n", phases.Render(), phasesNote)
}

const footnote = `requests: what arrived at the servers. peak: in 200 ms. time to recover: after the pulse, until 99 %
of the calls of 250 ms succeed. p99: of all calls, failed ones too. orders made twice: CreateOrder was
sent again though the servers did, or still do, what they were sent first.`

const phasesNote = `Of the calls that began in the phase. CreateOrder is not repeated by stagger, since
nobody has declared it safe.`

func newTable(out screen, title string) table.Writer {
	t := table.NewWriter()
	t.SetTitle("%s", title)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Title.Format = text.FormatDefault
	if out.colours {
		t.Style().Title.Colors = text.Colors{text.Bold}
		t.SetRowPainter(func(row table.Row) text.Colors {
			if row[0] == stagger {
				return text.Colors{text.FgGreen}
			}
			return nil
		})
	}
	return t
}

// alignRight aligns all columns but the first.
func alignRight(t table.Writer, columns int) {
	var list []table.ColumnConfig
	for n := 2; n <= columns; n++ {
		list = append(list, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(list)
}

func percent(part float64) string { return fmt.Sprintf("%.1f", 100*part) }

func recovered(r result) string {
	if !r.returned {
		return "never"
	}
	return fmt.Sprintf("%.1f", r.recovery.Seconds())
}
