// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guptarohit/asciigraph"
)

// Of each chart.
const (
	chartHeight = 6
	chartCut    = 3 // capacities: what is above would flatten the rest
	margin      = 7 // columns before the first bucket
)

var chartColours = []asciigraph.AnsiColor{asciigraph.DodgerBlue, asciigraph.Red, asciigraph.Orange, asciigraph.Green}

// printCharts shows the arrivals at the servers over the day, one chart for each client, one below
// the other so that their times are in line.
func printCharts(out screen, d day, who []contender, records []record) {
	capacity := d.fleet.capacity()
	out.printf("\nRequests/s at the servers over the %g s; dotted: their capacity; cut off at %.0f\n", d.length().Seconds(), chartCut*capacity)
	for i, c := range who {
		arrivals := rates(records[i].requests, d.length(), bucket)
		limit := slices.Repeat([]float64{capacity}, len(arrivals))
		for k := range arrivals {
			arrivals[k] = min(arrivals[k], chartCut*capacity)
		}
		options := []asciigraph.Option{
			asciigraph.Height(chartHeight), asciigraph.LowerBound(0), asciigraph.UpperBound(chartCut * capacity),
			asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%5.0f", v) }),
			asciigraph.SeriesChars(asciigraph.CreateCharSet("┄"), asciigraph.DefaultCharSet),
		}
		if out.colours {
			options = append(options, asciigraph.SeriesColors(asciigraph.Gray, chartColours[i%len(chartColours)]))
		}
		out.printf("%s\n%s\n", c.name, asciigraph.PlotMany([][]float64{limit, arrivals}, options...))
	}
	out.printf("%s\n", timeline(d))
}

// timeline names the phases below the charts, each where it begins.
func timeline(d day) string {
	var line strings.Builder
	for _, label := range d.labels() {
		from, _ := d.span(label)
		column := margin + int(from/bucket)
		line.WriteString(strings.Repeat(" ", max(column-len([]rune(line.String())), 1)))
		line.WriteString("└" + label)
	}
	return line.String()
}
