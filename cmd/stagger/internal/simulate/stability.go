// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"io"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// bears finds how much load a scenario can take.
func (o *options) bears(ctx context.Context, errs io.Writer) (*sim.Stability, error) {
	s, err := o.load()
	if err != nil {
		return nil, err
	}
	b := terminal.NewProgress(errs, s.Title)
	defer b.Clear()
	return s.Stability(ctx, sim.Options{Seed: o.seed, Clients: o.clients, Progress: b.Set})
}

const (
	limitsTitle = "Limits"
	timesTitle  = "Time to recover in seconds, by the load before and after the trouble: the median of the seeds"
)

func writeStability(w io.Writer, r *sim.Stability) {
	printf(w, "%s: how much load it can take\n%s\n\n%s\n", r.Scenario.Title, stabilityText(r), render(limitsTable(r)))
	if t := timesTable(r); len(t.Columns) > 1 {
		printf(w, "\n%s\n%s\n", timesTitle, render(t))
	}
}

func stabilityText(r *sim.Stability) string {
	s := r.Scenario
	return fmt.Sprintf(`Loads are parts of the capacity: with %.4g calls a second, %s has no idle worker. The trouble doesn't change; the
load before and after it varies. serves all: %v %% of the calls of each fleet succeed while there is no trouble. does not recover:
they do not succeed again in the %v after the trouble, or not until the end. Each load is played with %d seeds.`,
		r.Capacity, r.Service, 100*s.Recovery.Success, s.Length()-s.TroubleEnd(), len(r.Seeds))
}

func limitsTable(r *sim.Stability) report.Table {
	t := report.Table{Title: limitsTitle, Columns: []string{variantColumn, "serves all up to", "does not recover from"}}
	load := func(part float64) string { return fmt.Sprintf("%s (%.4g/s)", percent(part), part*r.Capacity) }
	for i := range r.Variants {
		v := &r.Variants[i]
		serves, recovers := load(v.Serves.Holds), load(v.Recovers.Fails)
		if v.Serves.Holds == 0 {
			serves = "less than " + percent(v.Serves.Fails)
		}
		if v.Recovers.Fails == 0 {
			recovers = "more than " + percent(v.Recovers.Holds)
		}
		t.Rows = append(t.Rows, []string{v.Name, serves, recovers})
	}
	return t
}

func percent(part float64) string { return fmt.Sprintf("%.4g %%", 100*part) }

// timesTable has a column for each load at which a variant was played. A variant is not played above the first load that it
// does not recover from.
func timesTable(r *sim.Stability) report.Table {
	t := report.Table{Title: timesTitle, Columns: []string{variantColumn}}
	most := 0
	for i := range r.Variants {
		if times := r.Variants[i].Times; len(times) > most {
			most = len(times)
			t.Columns = t.Columns[:1]
			for _, at := range times {
				t.Columns = append(t.Columns, fmt.Sprintf("%.0f %%", 100*at.Load))
			}
		}
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		row := []string{v.Name}
		for k := range most {
			if k < len(v.Times) {
				row = append(row, v.Times[k].Took.String())
			} else {
				row = append(row, sim.Recovered{State: sim.RecoveryNever}.String())
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func stabilityPage(r *sim.Stability) *report.Report {
	section := report.Section{Title: limitsTitle, Tables: []report.Table{limitsTable(r)}}
	plot := report.Plot{Title: "Time to recover", XLabel: "load before and after the trouble, % of the capacity", YLabel: inSeconds}
	for i := range r.Variants {
		line := report.Series{Name: r.Variants[i].Name}
		for _, at := range r.Variants[i].Times {
			if at.Took.State == sim.RecoveryReturned {
				line.X = append(line.X, 100*at.Load)
				line.Y = append(line.Y, at.Took.Took.Seconds())
			}
		}
		if len(line.X) > 0 {
			plot.Series = append(plot.Series, line)
		}
	}
	if len(plot.Series) > 0 {
		section.Plots = []report.Plot{plot}
		section.Tables = append(section.Tables, timesTable(r))
	}
	return &report.Report{Title: upper(r.Scenario.Title) + ": how much load it can take", Text: oneLine(stabilityText(r)), Sections: []report.Section{section}}
}
