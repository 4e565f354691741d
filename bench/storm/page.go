// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/report"
)

// newPage is the report with plots.
func newPage(s settings, tallies []*tally) *report.Report {
	page := &report.Report{
		Title: "Storms: stagger beside its peers",
		Text: fmt.Sprintf("The same calls at the same times (seed %d), by clients that differ in their retries alone, over real gRPC in "+
			"memory. %s A backend works on %d requests at a time, %v each, and on those whose caller has gone too; before it stands a "+
			"queue for 1.5 s of work. All retry UNAVAILABLE and RESOURCE_EXHAUSTED, up to %d attempts, backoff from %v to %v.\n\n"+
			"%s\n\n%s",
			s.seed, setting(), storm{}.shape().workers, serviceTime, attempts, initialBackoff, maxBackoff,
			strings.ReplaceAll(legend, "\n", " "), s.machine()),
		Sections: []report.Section{{
			Title: "What stagger should do, and what it did",
			Text: "A claim about peers holds if stagger's success is not lower by more than two standard deviations of such a share, and its " +
				"time to recover not longer by more than 0.1 s. Peers are those that recover and react to slow attempts as the storm says.",
			Tables: []report.Table{verdictTable(tallies)},
		}, {
			Title:  "What stagger does worse than a peer",
			Text:   strings.ReplaceAll(worseText, "\n", " "),
			Tables: []report.Table{worseTable(tallies)},
		}},
	}
	for _, t := range tallies {
		page.Sections = append(page.Sections, t.section())
	}
	return page
}

// machine says what the storms were played on.
func (s settings) machine() string {
	if s.beside == 0 {
		return "Played in virtual time: no machine is too slow for it, and all that takes time is the service and the waits."
	}
	return fmt.Sprintf("Played %d at a time on %d processors, %s, %s/%s.", s.beside, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// section is a storm with its plots.
func (t *tally) section() report.Section {
	s := report.Section{
		Title:  strings.ToUpper(t.storm.name[:1]) + t.storm.name[1:],
		Text:   fmt.Sprintf("%s. %s\nTarget: %s", t.storm.what, t.storm.terms(), t.storm.target),
		Tables: []report.Table{t.table()},
	}
	for _, group := range t.groups() {
		s.Plots = append(s.Plots, t.arrivals(group))
	}
	for _, group := range t.groups() {
		s.Plots = append(s.Plots, t.successes(group))
	}
	s.Plots = append(s.Plots, t.perCall(), t.latency())
	return s
}

// groups are the places of the clients that are drawn into one plot: few enough to follow, and stagger,
// from one connection, among them.
func (t *tally) groups() [][]int {
	ours := slices.IndexFunc(t.who, func(c contender) bool { return c.ours })
	groups := [][]int{{ours}, {ours}}
	for i, c := range t.who {
		switch {
		case c.ours:
		case strings.HasPrefix(c.name, "failsafe"):
			groups[1] = append(groups[1], i)
		default:
			groups[0] = append(groups[0], i)
		}
	}
	return groups
}

func (t *tally) arrivals(group []int) report.Plot {
	p := report.Plot{
		Title: "Arrivals" + t.at(), XLabel: "seconds from the beginning of the trouble", YLabel: "requests per second, in 200 ms",
		Kind: report.Line, Half: true, Levels: []report.Level{{Name: "capacity", Y: t.storm.shape().capacity()}},
	}
	for _, r := range t.results {
		p.YMax = max(p.YMax, 1.04*slices.Max(r.series.requests), 1.04*t.storm.shape().capacity()) // both plots have one scale
	}
	for _, i := range group {
		p.Series = append(p.Series, report.Series{Name: t.who[i].name, X: t.results[i].series.at, Y: t.results[i].series.requests})
	}
	return p
}

func (t *tally) successes(group []int) report.Plot {
	p := report.Plot{
		Title: "Success", XLabel: "seconds from the beginning of the trouble", YLabel: "% of the calls that began in 200 ms",
		Kind: report.Line, Half: true, YMax: 105,
	}
	for _, i := range group {
		x, y := t.results[i].series.share()
		p.Series = append(p.Series, report.Series{Name: t.who[i].name, X: x, Y: y})
	}
	return p
}

// at says which service is meant, if there are several.
func (t *tally) at() string {
	if t.storm.depth() > 1 {
		return " at the last service"
	}
	return ""
}

// perCall has a bar for each service, so that a chain shows how requests multiply from one to the next.
func (t *tally) perCall() report.Plot {
	p := report.Plot{Title: "Requests per call", YLabel: "requests for each call of a user", Kind: report.Bars, Half: true, Labels: t.names()}
	for k := range t.storm.depth() {
		s := report.Series{Name: "requests"}
		if t.storm.depth() > 1 {
			s.Name = fmt.Sprintf("service %d", k+1)
		}
		for _, r := range t.results {
			s.Y = append(s.Y, r.services[k])
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (t *tally) latency() report.Plot {
	p := report.Plot{Title: "Latency of all calls, failed ones too", YLabel: "ms", Kind: report.Bars, Half: true, Labels: t.names()}
	for _, quantile := range []struct {
		name string
		of   func(result) time.Duration
	}{
		{"p50", func(r result) time.Duration { return r.p50 }},
		{"p99", func(r result) time.Duration { return r.p99 }},
		{"p999", func(r result) time.Duration { return r.p999 }},
	} {
		s := report.Series{Name: quantile.name}
		for _, r := range t.results {
			s.Y = append(s.Y, inMillis(quantile.of(r)))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (t *tally) names() []string {
	names := make([]string, len(t.who))
	for i, c := range t.who {
		names[i] = c.name
	}
	return names
}
