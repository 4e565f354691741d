// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
)

// hostile is what a page must not take for its own.
const hostile = `</script></svg><script src="https://example.com/x.js">alert(1)</script><img src="https://example.com/y.png"> & "quoted" stroke:#000000`

// sample has every kind of plot, and hostile text wherever there is text.
func sample() *Report {
	var lines []Series
	for i, name := range []string{"stagger", "no retries", "gRPC", "gRPC, throttling", "grpc-middleware", "failsafe", "failsafe, budget", "failsafe, breaker", hostile} {
		s := Series{Name: name}
		for k := range 60 {
			at := float64(k) / 5
			s.X = append(s.X, at)
			s.Y = append(s.Y, 550+500*math.Exp(-(at-6)*(at-6)/float64(1+i))+float64(20*i))
		}
		lines = append(lines, s)
	}
	edges := []float64{0, 10, 20, 30, 40, 50}
	small := Plot{
		Title: "Small " + hostile, XLabel: "time, s", YLabel: "per second", Kind: Line, Half: true, YMax: 1500,
		Series: []Series{{Name: "arrivals", X: lines[0].X, Y: lines[0].Y}, {Name: "answers", X: lines[0].X[:30], Y: lines[5].Y[:30]}},
		Levels: []Level{{"capacity", 1000}, {"half", 500}},
	}
	second := small
	second.Title, second.LogY = "Logarithmic", true
	return &Report{
		Title: "Storms " + hostile,
		Text:  "What eleven clients make of eight storms.\n\nEach has servers of its own.",
		Sections: []Section{
			{
				Title: "Pulse", Text: hostile,
				Plots: []Plot{
					{Title: "Arrivals", XLabel: "time, s", YLabel: hostile, Kind: Line, Series: lines, Levels: []Level{{"capacity", 1000}}},
					small, second,
					{
						Title: "Requests per call", YLabel: "requests per call", Kind: Bars, Labels: []string{"no retries", "stagger", "grpc-middleware", hostile[:30]},
						Series: []Series{{Name: "pulse", Y: []float64{1, 1.11, 3.98, 0}}}, Levels: []Level{{"target", 1.12}},
					},
					{
						Title: "Latency", YLabel: "ms", Kind: Bars, Labels: []string{"no retries", "stagger"}, Half: true,
						Series: []Series{{Name: "p50", Y: []float64{20, 21}}, {Name: "p99", Y: []float64{400, 120}}, {Name: "p999", Y: []float64{1000, 610}}},
					},
					{
						Title: "Delays", XLabel: "delay, ms", YLabel: "part", Kind: Histogram, Half: true,
						Series: []Series{{"FULL", edges, []float64{0.2, 0.2, 0.2, 0.2, 0.2}}, {"EQUAL", edges, []float64{0, 0, 0.33, 0.33, 0.34}}},
					},
				},
				Tables: []Table{{Title: hostile, Columns: []string{"client", "success\n%", hostile[:20]}, Rows: [][]string{{"stagger", "99.9", "1"}, {hostile, "", ""}}}},
			},
			{Title: "Second", Plots: []Plot{{
				Title: "Nothing but zero", Kind: Line, Series: []Series{{Name: "zero", X: []float64{1}, Y: []float64{0}}},
			}}},
			{Title: "Third", Text: fmt.Sprintf("%d sections have contents.", 3)},
		},
	}
}
