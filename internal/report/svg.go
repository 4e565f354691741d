// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
)

// Plot is a drawing of lines, on axes of values from 0. Everything in it must be finite.
type Plot struct {
	Title  string // also the drawing's text for screen readers
	XLabel string
	YLabel string
	Series []Series // at least one, with names of their own
	YMax   float64  // end of the values' axis; 0: above the largest
}

// Series is one set of figures in a plot: a line through its points, in their order.
type Series struct {
	Name string
	X    []float64
	Y    []float64
}

// The text of a plot, which is filled with a [picture].
//
//go:embed plot.svg
var svgText string

var svgFile = template.Must(template.New("plot.svg").Parse(svgText))

// picture is a plot in points: a drawing of width × height below its legend.
type picture struct {
	Plot

	Height       float64 // of the whole picture
	Top, Bottom  float64 // of the drawing
	Lines        []line
	Marks, Steps []mark // of the axes
}

// line is a series and its line in the legend.
type line struct {
	Name   string
	Style  template.CSS
	Y      float64 // in the legend
	Points string
}

// mark is a round number on an axis.
type mark struct {
	At    float64
	Label string
}

const (
	width, height = 760, 290
	left, right   = 44, 750 // of the drawing; labels of values stand before it
	lineHeight    = 18      // of text
)

// Seven colours have a contrast to white of 3 or more, and differ for readers with red-green colour blindness. With five kinds of
// dashes, 35 series differ.
var (
	hues   = []string{"#0072b2", "#d55e00", "#007a5a", "#b0528c", "#8a6d00", "#5b5bd6", "#6b6b6b"}
	dashes = []string{"none", "7 3", "2 2", "9 3 2 3", "5 2"}
)

// WriteSVG writes the plot as its own file.
func (p *Plot) WriteSVG(w io.Writer) error {
	top := float64(len(p.Series)+2) * lineHeight
	shown := picture{Plot: *p, Top: top, Bottom: top + height, Height: top + height + 2*lineHeight}
	first, last, most := math.Inf(1), math.Inf(-1), p.YMax
	for _, s := range p.Series {
		first, last = min(first, slices.Min(s.X)), max(last, slices.Max(s.X))
		if p.YMax == 0 {
			most = max(most, 1.04*slices.Max(s.Y))
		}
	}
	most = cmp.Or(most, 1)
	across := func(x float64) float64 { return left + (right-left)*(x-first)/max(last-first, 1e-9) }
	up := func(y float64) float64 { return shown.Bottom - height*y/most }
	for i, s := range p.Series {
		points := make([]string, len(s.X))
		for k, x := range s.X {
			points[k] = fmt.Sprintf("%.1f,%.1f", across(x), up(s.Y[k]))
		}
		style := fmt.Sprintf("stroke:%s;stroke-dasharray:%s", hues[i%len(hues)], dashes[i%len(dashes)])
		name := s.Name
		if like := slices.IndexFunc(p.Series[:i], func(other Series) bool { return s.covers(other, most) }); like >= 0 {
			name += " (nearly equal to " + p.Series[like].Name + ")"
		}
		shown.Lines = append(shown.Lines, line{name, template.CSS(style), float64(i+2) * lineHeight, strings.Join(points, " ")})
	}
	shown.Steps, shown.Marks = marks(first, last, across), marks(0, most, up)
	return svgFile.Execute(w, shown)
}

// covers reports whether the lines of two series can't be told apart in a drawing: nowhere are they further apart than a line is thick,
// but for one point of fifty.
func (s *Series) covers(other Series, most float64) bool {
	const thickness = 1.6
	if !slices.Equal(s.X, other.X) {
		return false
	}
	apart := 0
	for i, y := range s.Y {
		if height*math.Abs(y-other.Y[i])/most > thickness {
			apart++
		}
	}
	return apart*50 <= len(s.Y)
}

// marks returns round numbers, 1, 2 or 5 times a power of ten apart, and where they stand.
func marks(from, to float64, at func(float64) float64) (list []mark) {
	step := math.Pow(10, math.Floor(math.Log10((to-from)/8)))
	for _, times := range []float64{2, 2.5, 2} { // 2, 5, 10
		if (to-from)/step > 8 {
			step *= times
		}
	}
	for i := math.Ceil(from/step - 1e-9); i <= math.Floor(to/step+1e-9); i++ {
		list = append(list, mark{at(i * step), number(i*step + 0)}) // -0 + 0 is 0
	}
	return list
}
