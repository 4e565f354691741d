// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/schollz/progressbar/v3"
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
	if s.Colours {
		options = append(options, asciigraph.SeriesColors(asciigraph.Gray, chartColours[colour%len(chartColours)]))
	}
	return asciigraph.PlotMany([][]float64{slices.Repeat([]float64{level}, len(cut)), cut}, options...)
}

// Progress is a bar that moves, with the time that is left. A nil Progress shows nothing. It may be used by several
// goroutines at once.
type Progress struct{ bar *progressbar.ProgressBar }

const progressSteps = 1000

// NewProgress is a bar on w; nil if w is no terminal.
func NewProgress(w io.Writer, title string) *Progress {
	if !Is(w) {
		return nil
	}
	return newProgress(w, title)
}

func newProgress(w io.Writer, title string) *Progress {
	return &Progress{progressbar.NewOptions(progressSteps, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond))}
}

// Title changes the text before the bar.
func (p *Progress) Title(title string) {
	if p != nil {
		p.bar.Describe(title)
	}
}

// Set moves the bar to the part that is done, 0 to 1.
func (p *Progress) Set(part float64) {
	if p != nil {
		_ = p.bar.Set(min(int(part*progressSteps), progressSteps-1)) // a bar that cannot be drawn is none
	}
}

// Clear takes the bar off the screen until it moves on.
func (p *Progress) Clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}
