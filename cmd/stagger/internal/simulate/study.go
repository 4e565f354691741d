// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

// studied runs the experiments of the study.
func (o *options) studied(ctx context.Context, errs io.Writer) ([]sim.Finding, sim.Study, error) {
	s := sim.AWS()
	s.Seed = cmp.Or(o.seed, s.Seed)
	s.Repeats = cmp.Or(o.repeats, s.Repeats)
	b := terminal.NewProgress(errs, "experiments")
	defer b.Clear()
	findings, err := s.Run(ctx, b.Set)
	return findings, s, err
}

const (
	studyTitle = "Exponential backoff and jitter"
	writes     = "calls"
)

const studyText = `Clients that start together each change one row, on the condition that no other client has changed it since
they read it. After the experiment of the AWS Architecture Blog (2015). calls: writes of all clients. seconds:
until the last client had succeeded. Average of %d runs.`

func writeStudy(w io.Writer, s sim.Study, findings []sim.Finding) {
	printf(w, "%s\n"+studyText+"\n", studyTitle, s.Repeats)
	for _, t := range []report.Table{studyTable(writes, findings, calls), studyTable(inSeconds, findings, seconds)} {
		printf(w, "\n%s\n%s\n", t.Title, render(t))
	}
}

func calls(f sim.Finding) string   { return fmt.Sprintf("%.0f", f.Calls) }
func seconds(f sim.Finding) string { return fmt.Sprintf("%.2f", f.Seconds) }

// studyTable returns a table with a row for each number of clients, and a column for each kind of backoff.
func studyTable(what string, findings []sim.Finding, cell func(sim.Finding) string) report.Table {
	t := report.Table{Title: what, Columns: append([]string{"clients"}, sim.StudyKinds()...)}
	rows := map[int]int{}
	for _, f := range findings {
		i, ok := rows[f.Clients]
		if !ok {
			i = len(t.Rows)
			rows[f.Clients] = i
			t.Rows = append(t.Rows, []string{strconv.Itoa(f.Clients)})
		}
		t.Rows[i] = append(t.Rows[i], cell(f))
	}
	return t
}

func studyPage(s sim.Study, findings []sim.Finding) *report.Report {
	return &report.Report{
		Title: studyTitle,
		Text: oneLine(fmt.Sprintf(studyText, s.Repeats)) + fmt.Sprintf(" Seed %d; the network takes %v ± %v for a message; waits begin at %v before "+
			"jitter and are capped at %v.", s.Seed, s.Network.A, s.Network.B, 2*s.Base, s.Cap),
		Sections: []report.Section{
			{
				Title: callsTitle, Text: "The work that the clients make.", Tables: []report.Table{studyTable(writes, findings, calls)},
				Plots: []report.Plot{studyPlot(callsTitle, "writes of all clients", findings, func(f sim.Finding) float64 { return f.Calls })},
			},
			{
				Title: "Time", Text: "How long it takes until all have succeeded.", Tables: []report.Table{studyTable(inSeconds, findings, seconds)},
				Plots: []report.Plot{studyPlot("Time", "seconds until all have succeeded", findings, func(f sim.Finding) float64 { return f.Seconds })},
			},
			{
				Title: "Waits", Text: "How long a client waits after its sixth failure, by the kind of jitter.",
				Plots: []report.Plot{jitterPlot(s)},
			},
		},
	}
}

func studyPlot(title, label string, findings []sim.Finding, value func(sim.Finding) float64) report.Plot {
	p := report.Plot{Title: title, XLabel: "clients", YLabel: label, Kind: report.Line, LogY: true, Half: true}
	for _, kind := range sim.StudyKinds() {
		s := report.Series{Name: kind}
		for _, f := range findings {
			if f.Kind == kind {
				s.X = append(s.X, float64(f.Clients))
				s.Y = append(s.Y, value(f))
			}
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// jitterPlot plots the waits of each kind of jitter, for evenly distributed random numbers.
func jitterPlot(s sim.Study) report.Plot {
	const failures, bins, draws = 6, 40, 20_000
	p := report.Plot{Title: "Distribution of waits", XLabel: "ms", YLabel: "% of the waits", Kind: report.Histogram}
	kinds := []policy.Jitter{policy.JitterFull, policy.JitterEqual, policy.JitterDecorrelated, policy.JitterProportional}
	longest := float64(s.Base<<failures) * 1.25
	for _, kind := range kinds {
		b := policy.Backoff{Initial: s.Base, Max: s.Cap, Multiplier: 2, Jitter: kind}
		y := make([]float64, bins)
		for i := range draws {
			var wait time.Duration
			for n := 1; n <= failures; n++ {
				wait = b.Delay(n, wait, evenly(i, n))
			}
			y[min(int(float64(wait)/longest*bins), bins-1)] += 100.0 / draws
		}
		edges := make([]float64, bins+1)
		for i := range edges {
			edges[i] = longest / 1e6 * float64(i) / bins
		}
		p.Series = append(p.Series, report.Series{Name: string(kind), X: edges, Y: y})
	}
	slices.SortFunc(p.Series, func(a, b report.Series) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// evenly returns the i-th of evenly distributed numbers in [0, 1), in a different order for each n: multiples of a root.
func evenly(i, n int) float64 {
	roots := [...]float64{0.41421356237, 0.73205080757, 0.2360679775, 0.64575131106, 0.31662479036, 0.60555127546}
	v := float64(i) * roots[(n-1)%len(roots)]
	return v - float64(int(v))
}
