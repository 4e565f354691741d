// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// hue is the colour of a series on light and on dark ground. All stand out from their ground by a
// contrast of 3 or more, and from each other for eyes that do not tell red from green.
type hue struct{ light, dark string }

var hues = []hue{
	{"#0072b2", "#56b4e9"},
	{"#d55e00", "#ff8f4a"},
	{"#007a5a", "#3fc79a"},
	{"#b0528c", "#ec9ec8"},
	{"#8a6d00", "#f0c24b"},
	{"#5b5bd6", "#a9a9ff"},
	{"#6b6b6b", "#b5b5b5"},
}

// dashes are as many as have no divisor in common with the hues, so that 35 series differ in one or
// the other, and the first five in both.
var dashes = [][]float64{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}, {5, 2}}

// Colours that are not a series'. Drawings carry those for light ground; the page's style sheet puts
// others in their place on dark ground.
const (
	gridHue  = "#d8d8d8"
	levelHue = "#b00020"
)

func seriesHue(i int) string       { return hues[i%len(hues)].light }
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

// recolour is a style sheet that shows the drawings' colours for light ground as those for dark. The
// drawings name colours in style attributes alone, so no text is touched.
func recolour() template.CSS {
	var css strings.Builder
	for _, h := range append(slices.Clone(hues), hue{gridHue, "#3a3f47"}, hue{levelHue, "#ff7b86"}) {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&css, "svg [style*=\"%[1]s:%[2]s\" i]{%[1]s:%[3]s!important}\n", property, h.light, h.dark)
		}
	}
	return template.CSS(css.String())
}
