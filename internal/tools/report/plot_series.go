// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// addLines draws each series as a line. It draws the first last, on top of the others.
func (p *Plot) addLines(g *plot.Plot) error {
	for i, s := range slices.Backward(p.Series) {
		line, err := plotter.NewLine(points(s))
		if err != nil {
			return fmt.Errorf("report: %s: %s: %w", p.Title, s.Name, err)
		}
		line.Color, line.Width, line.Dashes = rgb(seriesHue(i)), 1.6, lengths(seriesDashes(i))
		g.Add(line)
	}
	return nil
}

func points(s Series) plotter.XYs {
	list := make(plotter.XYs, len(s.Y))
	for k, y := range s.Y {
		list[k] = plotter.XY{X: s.X[k], Y: y}
	}
	return list
}

// hues are the colours of series. Each has a contrast to white of 3 or more, and they differ for readers with red-green
// colour blindness.
var hues = []string{"#0072b2", "#d55e00", "#007a5a", "#b0528c", "#8a6d00", "#5b5bd6", "#6b6b6b"}

// dashes has a length without a common divisor with that of hues. So 35 series differ in one or the other, and the first
// five in both.
var dashes = [][]float64{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}, {5, 2}}

// Colours of everything but series.
const (
	gridHue  = "#d8d8d8"
	levelHue = "#b00020"
)

func seriesHue(i int) string       { return hues[i%len(hues)] }
func seriesDashes(i int) []float64 { return dashes[i%len(dashes)] }

// levelDashes returns the dashes of a level, which differ from other levels and from series.
func levelDashes(i int) []float64 { return [][]float64{{1, 3}, {4, 4}, {8, 4}}[i%3] }

// rgb returns the colour of "#rrggbb".
func rgb(hex string) color.Color {
	c := color.NRGBA{A: 0xff}
	_, _ = fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B) // of the constants above
	return c
}

func lengths(dashes []float64) []vg.Length {
	list := make([]vg.Length, len(dashes))
	for i, d := range dashes {
		list[i] = vg.Length(d)
	}
	return list
}
