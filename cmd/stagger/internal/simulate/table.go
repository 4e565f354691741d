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

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/policy"
)

const (
	variantColumn = "variant"
	fleetColumn   = "fleet"
)

func fleetTable(r *sim.Result) report.Table {
	t := report.Table{
		Title:   callsTitle,
		Columns: []string{variantColumn, fleetColumn, "success %", "requests", "time to recover, s", "p50 ms", "p99 ms", "p999 ms", "why"},
	}
	for _, p := range r.Runs {
		for _, f := range p.Fleets {
			t.Rows = append(t.Rows, []string{
				p.Name, f.Name, fmt.Sprintf("%.2f", 100*f.Success), fmt.Sprintf("%.2f", f.PerCall), recovery(f.Recovery),
				millis(f.P50), millis(f.P99), millis(f.P999), why(f),
			})
		}
	}
	return t
}

func recovery(r sim.Recovered) string {
	switch r.State {
	case sim.Returned:
		return fmt.Sprintf("%.2f", r.Took.Seconds())
	case sim.Never:
		return "never"
	default:
		return "–"
	}
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
				fmt.Sprintf("%.0f", capacity(&r.Scenario.Services[i])), strconv.Itoa(s.Refused), fmt.Sprintf("%.1f", 100*share(s.Wasted, s.Served)),
			})
		}
	}
	return t
}

// capacity is what a service that is well serves in a second.
func capacity(s *sim.Service) float64 {
	return float64(s.Backends*s.Workers) / s.Time.Mean().Seconds()
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

// render is a table for a terminal; a column with one word in it is left out.
func render(from report.Table) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	var keep []int
	header := table.Row{}
	var config []table.ColumnConfig
	for i, name := range from.Columns {
		if name == fleetColumn && alike(from.Rows, i) {
			continue
		}
		keep = append(keep, i)
		header = append(header, name)
		if !slices.Contains([]string{variantColumn, fleetColumn, "service", "why"}, name) {
			config = append(config, table.ColumnConfig{Number: len(keep), Align: text.AlignRight})
		}
	}
	t.AppendHeader(header)
	t.Style().Format.Header = text.FormatDefault
	t.SetColumnConfigs(config)
	for _, row := range from.Rows {
		cells := make(table.Row, 0, len(keep))
		for _, i := range keep {
			cells = append(cells, row[i])
		}
		t.AppendRow(cells)
	}
	return t.Render()
}

func alike(rows [][]string, column int) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return row[column] != rows[0][column] })
}
