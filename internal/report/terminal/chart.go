// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"slices"

	"github.com/guptarohit/asciigraph"
)

// Of each chart.
const (
	chartHeight = 6

	// ChartCut is where a chart ends, in times its level: what is above would flatten the rest.
	ChartCut = 3
	// ChartMargin is the columns before the first value, for levels of less than 30,000.
	ChartMargin = 7
)

var chartColours = []asciigraph.AnsiColor{asciigraph.DodgerBlue, asciigraph.Red, asciigraph.Orange, asciigraph.Green}

// Chart draws values, at least two, against a dotted level, in so many columns; 0 is one for each value. The colour
// counts from 0.
func Chart(values []float64, level float64, columns int, s Style, colour int) string {
	cut := make([]float64, len(values))
	for i, v := range values {
		cut[i] = min(v, ChartCut*level)
	}
	options := []asciigraph.Option{
		asciigraph.Height(chartHeight), asciigraph.Width(columns), asciigraph.LowerBound(0), asciigraph.UpperBound(ChartCut * level),
		asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%5.0f", v) }),
		asciigraph.SeriesChars(asciigraph.CreateCharSet("┄"), asciigraph.DefaultCharSet),
	}
	if s.colours {
		options = append(options, asciigraph.SeriesColors(asciigraph.Gray, chartColours[colour%len(chartColours)]))
	}
	return asciigraph.PlotMany([][]float64{slices.Repeat([]float64{level}, len(cut)), cut}, options...)
}
