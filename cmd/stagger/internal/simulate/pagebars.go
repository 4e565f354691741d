// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"time"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/sim"
)

// amplification has a bar for each service, so that a chain shows how requests multiply from one to the next.
func amplification(r *sim.Result) report.Plot {
	p := report.Plot{Title: "Requests per call, by depth", YLabel: "requests for each call of a user", Kind: report.Bars}
	for i := range r.Scenario.Services {
		p.Labels = append(p.Labels, r.Scenario.Services[i].Name)
	}
	for _, run := range r.Runs {
		s := report.Series{Name: run.Name}
		for _, service := range run.Services {
			s.Y = append(s.Y, service.PerCall)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

const delayBins = 40

// delays has the waits before extra attempts of each variant, if there were any.
func delays(r *sim.Result) []report.Plot {
	p := report.Plot{Title: "Waits before extra attempts", XLabel: "ms", YLabel: "% of the waits", Kind: report.Histogram}
	var longest time.Duration
	for _, run := range r.Runs {
		for _, f := range run.Fleets {
			if n := len(f.Delays.Bins); n > 0 {
				longest = max(longest, f.Delays.Bins[n-1].Until)
			}
		}
	}
	for _, run := range r.Runs {
		y := make([]float64, delayBins)
		var all float64
		for _, f := range run.Fleets {
			for _, b := range f.Delays.Bins {
				i := int((b.Until - 1) * delayBins / longest)
				y[min(i, delayBins-1)] += float64(b.Count)
				all += float64(b.Count)
			}
		}
		if all == 0 {
			continue
		}
		edges := make([]float64, delayBins+1)
		for i := range edges {
			edges[i] = 1000 * longest.Seconds() * float64(i) / delayBins
		}
		for i := range y {
			y[i] *= 100 / all
		}
		p.Series = append(p.Series, report.Series{Name: run.Name, X: edges, Y: y})
	}
	if len(p.Series) == 0 {
		return nil
	}
	return []report.Plot{p}
}
