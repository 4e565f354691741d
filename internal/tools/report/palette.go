// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/vg"
)

// hues are the colours of series. All stand out from white by a contrast of 3 or more, and from each other for
// eyes that do not tell red from green.
var hues = []string{"#0072b2", "#d55e00", "#007a5a", "#b0528c", "#8a6d00", "#5b5bd6", "#6b6b6b"}

// dashes are as many as have no divisor in common with the hues, so that 35 series differ in one or
// the other, and the first five in both.
var dashes = [][]float64{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}, {5, 2}}

// Colours that are not a series'.
const (
	gridHue  = "#d8d8d8"
	levelHue = "#b00020"
)

func seriesHue(i int) string       { return hues[i%len(hues)] }
func seriesDashes(i int) []float64 { return dashes[i%len(dashes)] }

// levelDashes tell levels from each other and from series.
func levelDashes(i int) []float64 { return [][]float64{{1, 3}, {4, 4}, {8, 4}}[i%3] }

// rgb is the colour of "#rrggbb".
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
