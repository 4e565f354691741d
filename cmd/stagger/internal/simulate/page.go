// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

const (
	callsTitle = "Calls"
	inSeconds  = "seconds"
)

// page returns the report with plots.
func page(r *sim.Result) *report.Report {
	s := r.Scenario
	about := strings.TrimSpace(s.About)
	if about != "" {
		about += "\n\n"
	}
	p := &report.Report{
		Title: upper(s.Title),
		Text: about + fmt.Sprintf("Played in virtual time, with seed %d. The interceptor's own code decided "+
			"about retries and budgets; clients, network and services are a model.\n\n%s", r.Seed, phases(s)),
		Sections: []report.Section{{
			Title: callsTitle, Text: oneLine(legend), Tables: []report.Table{fleetTable(r)}, Plots: successes(r),
		}},
	}
	for i := range s.Services {
		p.Sections = append(p.Sections, report.Section{Title: "Service " + s.Services[i].Name, Plots: []report.Plot{arrivals(r, i), inHand(r, i)}})
	}
	p.Sections = append(p.Sections, report.Section{
		Title: "Services", Text: oneLine(serviceLegend), Tables: []report.Table{serviceTable(r)},
	})
	return p
}

// upper returns a title with its first letter in upper case.
func upper(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

// phases returns the list of phases with their faults.
func phases(s *sim.Scenario) string {
	parts := make([]string, 0, len(s.Phases))
	var at time.Duration
	for _, p := range s.Phases {
		parts = append(parts, fmt.Sprintf("%s from %v to %v", p.Name, at, at+p.Length))
		at += p.Length
	}
	return "Phases: " + strings.Join(parts, ", ") + "."
}

// times returns the middles of the buckets, in seconds.
func times(r *sim.Result, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = (float64(i) + 0.5) * r.Bucket.Seconds()
	}
	return list
}

func arrivals(r *sim.Result, service int) report.Plot {
	p := report.Plot{
		Title: "Arrivals at " + r.Scenario.Services[service].Name, XLabel: inSeconds,
		YLabel: fmt.Sprintf("requests per second, in %v", r.Bucket),
	}
	for _, run := range r.Runs {
		s := run.Services[service]
		y := make([]float64, len(s.Arrivals))
		for i, n := range s.Arrivals {
			y[i] = float64(n) / r.Bucket.Seconds()
		}
		p.Series = append(p.Series, report.Series{Name: run.Name, X: times(r, len(y)), Y: y})
	}
	if c := r.Runs[0].Services[service].Capacity; slices.Max(c) > slices.Min(c) {
		p.Series = append(p.Series, report.Series{Name: "capacity", X: times(r, len(c)), Y: c})
	} else {
		p.Levels = []report.Level{{Name: "capacity", Y: c[0]}}
	}
	return p
}

func inHand(r *sim.Result, service int) report.Plot {
	p := report.Plot{
		Title: "Work in hand at " + r.Scenario.Services[service].Name, XLabel: inSeconds, YLabel: "requests in queues and with workers",
	}
	for _, run := range r.Runs {
		s := run.Services[service]
		y := make([]float64, len(s.Held))
		for i, n := range s.Held {
			y[i] = float64(n)
		}
		p.Series = append(p.Series, report.Series{Name: run.Name, X: times(r, len(y)), Y: y})
	}
	return p
}

// successes returns a plot for each fleet.
func successes(r *sim.Result) []report.Plot {
	var plots []report.Plot
	for f, fleet := range r.Scenario.Fleets {
		p := report.Plot{
			Title: "Success of " + fleet.Name, XLabel: inSeconds, YLabel: fmt.Sprintf("%% of the calls that began in %v", r.Bucket), YMax: 105,
		}
		for _, run := range r.Runs {
			s := report.Series{Name: run.Name}
			at := times(r, len(run.Fleets[f].Begun))
			for i, n := range run.Fleets[f].Begun {
				if n > 0 {
					s.X = append(s.X, at[i])
					s.Y = append(s.Y, 100*sim.Ratio(run.Fleets[f].Succeeded[i], n))
				}
			}
			if len(s.X) > 0 {
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) > 0 {
			plots = append(plots, p)
		}
	}
	return plots
}
