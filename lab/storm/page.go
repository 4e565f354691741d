// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report"
)

// newPage returns the report with plots.
func newPage(o options, outcomes []*outcome) *report.Report {
	storms := make([]storm, len(outcomes))
	for i, out := range outcomes {
		storms[i] = out.storm
	}
	page := &report.Report{
		Title: "Storms: stagger and its peers",
		Text: fmt.Sprintf("The same calls at the same times (seed %d), by clients that differ only in their retries, over real gRPC in "+
			"memory. %s A backend works on %d requests in parallel, %v each, also on those whose caller has left; it has a "+
			"queue for 1.5 s of work. All retry UNAVAILABLE and RESOURCE_EXHAUSTED, up to %d attempts, backoff from %v to %v.\n\n"+
			"%s\n\n%s",
			o.seed, setting(storms), storms[0].last().Workers, storms[0].last().Time.Mean(), attempts, initialBackoff, maxBackoff,
			strings.ReplaceAll(legend, "\n", " "), o.machine()),
		Sections: []report.Section{{
			Title: "What stagger should do, and what it did",
			Text: "A claim about peers holds if stagger's success is at most two standard deviations of such a share lower, and its " +
				"time to recover at most 0.1 s longer. It is about peers that recover, and that react to slow attempts as the storm says.",
			Tables: []report.Table{verdictTable(outcomes)},
		}, {
			Title:  "What stagger does worse than a peer",
			Text:   strings.ReplaceAll(worseText, "\n", " "),
			Tables: []report.Table{worseTable(outcomes)},
		}},
	}
	for _, out := range outcomes {
		page.Sections = append(page.Sections, out.section())
	}
	return page
}

// machine describes the computer on which the storms were played.
func (o options) machine() string {
	if o.parallel == 0 {
		return "Played in virtual time: no machine is too slow for it, and only the service and the waits take time."
	}
	return fmt.Sprintf("Played %d at a time on %d processors, %s, %s/%s.", o.parallel, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// section returns the section of a storm with its plots.
func (o *outcome) section() report.Section {
	s := report.Section{
		Title:  strings.ToUpper(o.storm.Title[:1]) + o.storm.Title[1:],
		Text:   fmt.Sprintf("%s. %s\nTarget: %s", o.storm.About, o.storm.terms(), o.storm.target),
		Tables: []report.Table{o.table()},
	}
	for _, group := range o.groups() {
		s.Plots = append(s.Plots, o.arrivals(group))
	}
	for _, group := range o.groups() {
		s.Plots = append(s.Plots, o.successes(group))
	}
	s.Plots = append(s.Plots, o.perCall(), o.latency())
	return s
}

// groups returns the indices of the clients for each plot: few enough to follow, always including stagger with one
// connection.
func (o *outcome) groups() [][]int {
	ours := slices.IndexFunc(o.clients, func(c client) bool { return c.ours })
	groups := [][]int{{ours}, {ours}}
	for i, c := range o.clients {
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

func (o *outcome) arrivals(group []int) report.Plot {
	p := report.Plot{
		Title: "Arrivals" + o.at(), XLabel: "seconds from the beginning of the trouble", YLabel: "requests per second, in 200 ms",
		Kind: report.Line, Half: true, Levels: []report.Level{{Name: "capacity", Y: o.storm.last().Capacity()}},
	}
	for _, r := range o.results {
		p.YMax = max(p.YMax, 1.04*slices.Max(r.series.Requests), 1.04*o.storm.last().Capacity()) // both plots have the same
	}
	for _, i := range group {
		p.Series = append(p.Series, report.Series{Name: o.clients[i].name, X: o.results[i].series.At, Y: o.results[i].series.Requests})
	}
	return p
}

func (o *outcome) successes(group []int) report.Plot {
	p := report.Plot{
		Title: "Success", XLabel: "seconds from the beginning of the trouble", YLabel: "% of the calls that began in 200 ms",
		Kind: report.Line, Half: true, YMax: 105,
	}
	for _, i := range group {
		x, y := o.results[i].series.Share()
		p.Series = append(p.Series, report.Series{Name: o.clients[i].name, X: x, Y: y})
	}
	return p
}

// at names the service if there are several.
func (o *outcome) at() string {
	if o.storm.chain() {
		return " at the last service"
	}
	return ""
}

// perCall returns a plot with a bar for each service, which shows how requests multiply along a chain.
func (o *outcome) perCall() report.Plot {
	p := report.Plot{Title: "Requests per call", YLabel: "requests for each call of a user", Kind: report.Bars, Half: true, Labels: o.names()}
	for k := range len(o.storm.Services) {
		s := report.Series{Name: "requests"}
		if o.storm.chain() {
			s.Name = fmt.Sprintf("service %d", k+1)
		}
		for _, r := range o.results {
			s.Y = append(s.Y, r.Services[k])
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (o *outcome) latency() report.Plot {
	p := report.Plot{Title: "Latency of all calls, including failed ones", YLabel: "ms", Kind: report.Bars, Half: true, Labels: o.names()}
	for _, quantile := range []struct {
		name string
		of   func(result) time.Duration
	}{
		{"p50", func(r result) time.Duration { return r.P50 }},
		{"p99", func(r result) time.Duration { return r.P99 }},
		{"p999", func(r result) time.Duration { return r.P999 }},
	} {
		s := report.Series{Name: quantile.name}
		for _, r := range o.results {
			s.Y = append(s.Y, inMillis(quantile.of(r)))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (o *outcome) names() []string {
	names := make([]string, len(o.clients))
	for i, c := range o.clients {
		names[i] = c.name
	}
	return names
}
