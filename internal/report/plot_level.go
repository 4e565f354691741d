// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// rule is a level as gonum draws it, from one side of the plot to the other wherever the axes end.
type rule struct {
	at      float64
	upright bool
	style   draw.LineStyle
}

// addLevels draws the levels above the series; across the bars for Bars.
func (p *Plot) addLevels(g *plot.Plot) {
	for i, l := range p.Levels {
		style := draw.LineStyle{Color: rgb(levelHue), Width: 1.4, Dashes: lengths(levelDashes(i))}
		upright := p.Kind == Bars
		g.Add(rule{l.Y, upright, style})
		axis := &g.Y
		if upright {
			axis = &g.X
		}
		axis.Min, axis.Max = min(axis.Min, l.Y), max(axis.Max, l.Y)
	}
}

// Plot implements [plot.Plotter].
func (r rule) Plot(c draw.Canvas, g *plot.Plot) {
	across, up := g.Transforms(&c)
	line := []vg.Point{{X: c.Min.X, Y: up(r.at)}, {X: c.Max.X, Y: up(r.at)}}
	if r.upright {
		line = []vg.Point{{X: across(r.at), Y: c.Min.Y}, {X: across(r.at), Y: c.Max.Y}}
	}
	c.StrokeLines(r.style, c.ClipLinesXY(line)...)
}
