// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed plot.svg
var svgText string

var svgFile = template.Must(template.New("plot.svg").Parse(svgText))

// svgPicture is a plot with its title, legend and labels, one line of text for each series beside the drawing.
type svgPicture struct {
	drawing

	Keys        []svgKey
	Full, Foot  float64 // the height of all, and where the label across stands
	Head, Right float64 // where the drawing begins, and ends
}

type svgKey struct {
	key

	Y, Text float64
}

const svgLine = 18 // between two lines of text

// WriteSVG writes the plot as a file of its own, with title, legend and labels on a white ground. An error is one of w,
// or names what is wrong in p.
func (p *Plot) WriteSVG(w io.Writer) error {
	whole := Report{Title: p.Title, Sections: []Section{{Title: p.Title, Plots: []Plot{*p}}}}
	if err := whole.check(); err != nil {
		return err
	}
	d, err := p.drawing(0)
	if err != nil {
		return err
	}
	picture := svgPicture{drawing: d, Head: float64(len(d.Legend)+2) * svgLine, Right: d.Width - margin}
	for i, k := range d.Legend {
		y := float64(i+2) * svgLine
		picture.Keys = append(picture.Keys, svgKey{k, y - 4, y})
	}
	picture.Foot = picture.Head + d.Height + svgLine/2
	picture.Full = picture.Foot + svgLine/2
	return svgFile.Execute(w, picture)
}
