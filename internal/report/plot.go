// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"html/template"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of the drawings, in points. The page scales them, halves and wholes alike.
const (
	wholeWidth, wholeHeight = 760, 290
	halfWidth, halfHeight   = 380, 220
	textSize                = 11
	margin                  = 14 // for the half of a label that stands at the end of an axis
)

// draw returns the drawing of p as the inside of an svg element, and its size in points. p is in order.
func (p *Plot) draw() (inside template.HTML, width, height float64, err error) {
	g := plot.New()
	p.axes(g)
	add := map[Kind]func(*plot.Plot) error{Line: p.addLines, Histogram: p.addLines, Bars: p.addBars}[p.Kind]
	if err := add(g); err != nil {
		return "", 0, 0, err
	}
	p.addLevels(g)
	p.limits(g)
	width, height = p.size()
	canvas := vgsvg.NewWith(vgsvg.UseWH(vg.Length(width), vg.Length(height)))
	g.Draw(draw.Crop(draw.New(canvas), 2, -margin, 0, -margin/2))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", 0, 0, err
	}
	_, rest, _ := bytes.Cut(text.Bytes(), []byte("<svg"))
	_, rest, _ = bytes.Cut(rest, []byte(">"))
	rest, _, _ = bytes.Cut(rest, []byte("</svg>"))
	return template.HTML(rest), width, height, nil
}

func (p *Plot) size() (width, height float64) {
	width, height = wholeWidth, wholeHeight
	if p.Half {
		width, height = halfWidth, halfHeight
	}
	if p.Kind == Bars {
		height = 30 + float64(len(p.Labels))*p.rowHeight()
	}
	return width, height
}

// axes are plain: title, labels and legend stand beside the drawing.
func (p *Plot) axes(g *plot.Plot) {
	g.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&g.X, &g.Y} {
		axis.Width, axis.Tick.Width = 0.75, 0.75
		axis.Tick.Length, axis.Padding = 4, 0
		axis.Tick.Label.Font.Variant, axis.Tick.Label.Font.Size = "Sans", textSize
		axis.Tick.Marker = ticker{most: 8}
	}
	if p.Half {
		g.X.Tick.Marker = ticker{most: 6}
	}
	if p.LogY {
		g.Y.Scale, g.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = rgb(gridHue), rgb(gridHue)
	if p.Kind == Bars {
		grid.Horizontal.Width = 0
	}
	g.Add(grid)
}

// limits begin the axis of the values at 0, or below if some are.
func (p *Plot) limits(g *plot.Plot) {
	values := &g.Y
	if p.Kind == Bars {
		values = &g.X
	}
	if !p.LogY {
		values.Min = min(values.Min, 0)
		room := 0.04 // above the highest line
		if p.Kind == Bars {
			room = 0.1 // for the value beside the longest bar
		}
		values.Max += room * (values.Max - values.Min)
	}
	values.Max = cmp.Or(p.YMax, values.Max)
	if values.Max <= values.Min { // nothing but zeros, or less than YMax leaves room for
		values.Max = values.Min + 1
	}
	if g.X.Max <= g.X.Min {
		g.X.Max = g.X.Min + 1
	}
}
