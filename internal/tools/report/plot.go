// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"html/template"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of the drawings, in points. The page scales them.
const (
	width, height = 760, 290
	textSize      = 11
	margin        = 14 // for half of a label at the end of an axis
)

// drawInside returns the drawing of p as the inside of an svg element.
func (p *Plot) drawInside() (template.HTML, error) {
	g := plot.New()
	p.axes(g)
	if err := p.addLines(g); err != nil {
		return "", err
	}
	p.addLevels(g)
	p.limits(g)
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	g.Draw(draw.Crop(draw.New(canvas), 2, -margin, 0, -margin/2))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", err
	}
	_, rest, _ := bytes.Cut(text.Bytes(), []byte("<svg"))
	_, rest, _ = bytes.Cut(rest, []byte(">"))
	rest, _, _ = bytes.Cut(rest, []byte("</svg>"))
	return template.HTML(rest), nil
}

// axes draws plain axes: title, labels and legend are outside of the drawing.
func (p *Plot) axes(g *plot.Plot) {
	g.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&g.X, &g.Y} {
		axis.Width, axis.Tick.Width = 0.75, 0.75
		axis.Tick.Length, axis.Padding = 4, 0
		axis.Tick.Label.Font.Variant, axis.Tick.Label.Font.Size = "Sans", textSize
		axis.Tick.Marker = ticker{}
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = rgb(gridHue), rgb(gridHue)
	g.Add(grid)
}

// limits starts the values' axis at 0, or lower if there are negative values.
func (p *Plot) limits(g *plot.Plot) {
	values := &g.Y
	values.Min = min(values.Min, 0)
	values.Max += 0.04 * (values.Max - values.Min)
	values.Max = cmp.Or(p.YMax, values.Max)
	if values.Max <= values.Min { // only zeros, or a YMax without room
		values.Max = values.Min + 1
	}
	if g.X.Max <= g.X.Min {
		g.X.Max = g.X.Min + 1
	}
}

// addLevels draws the levels above the series.
func (p *Plot) addLevels(g *plot.Plot) {
	for i, l := range p.Levels {
		line := plotter.NewFunction(func(float64) float64 { return l.Y })
		line.LineStyle = draw.LineStyle{Color: rgb(levelHue), Width: 1.4, Dashes: lengths(levelDashes(i))}
		line.Samples = 2
		g.Add(line)
		g.Y.Min, g.Y.Max = min(g.Y.Min, l.Y), max(g.Y.Max, l.Y)
	}
}

const inexact = 1e-9 // of a step: 0.35 is not quite seven times 0.05

// ticker marks an axis at round numbers, 1, 2 or 5 times a power of ten apart.
type ticker struct{}

// Ticks implements [plot.Ticker].
func (ticker) Ticks(from, to float64) []plot.Tick {
	step := roundUp((to - from) / 8)
	first, last := math.Ceil(from/step-inexact), math.Floor(to/step+inexact)
	n := int(last-first) + 1
	marks := make([]plot.Tick, 0, n)
	for i := range n {
		value := (first + float64(i)) * step
		marks = append(marks, plot.Tick{Value: value, Label: number(value)})
	}
	return marks
}

// roundUp returns the least number not below step that is 1, 2 or 5 times a power of ten.
func roundUp(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= step*(1-inexact) {
			return times * power
		}
	}
	return 10 * power
}
