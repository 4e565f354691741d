// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed plot.svg
var svgText string

var svgFile = template.Must(template.New("plot.svg").Parse(svgText))

// picture is a plot with its title, legend and labels, one line of text for each series.
type picture struct {
	Title       string
	Up, Across  string // labels of the axes
	Keys        []key
	Drawn       template.HTML
	Width, Full float64 // of the whole picture, in points
	Head, Foot  float64 // top of the drawing, and position of the label below
	Right       float64 // end of that label
}

// key is a line of a legend.
type key struct {
	Name    string
	Style   template.CSS
	Y, Text float64 // their positions
}

const lineHeight = 18 // of text

// WriteSVG writes the plot as a file of its own.
func (p *Plot) WriteSVG(w io.Writer) error {
	text, err := p.svg()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, string(text))
	return err
}

// svg returns the plot with title, legend and labels on a white ground.
func (p *Plot) svg() (template.HTML, error) {
	drawn, err := p.drawInside()
	if err != nil {
		return "", err
	}
	shown := picture{Title: p.Title, Up: p.YLabel, Across: p.XLabel, Keys: p.legend(), Drawn: drawn, Width: width, Right: width - margin}
	for i := range shown.Keys {
		y := float64(i+2) * lineHeight
		shown.Keys[i].Y, shown.Keys[i].Text = y-4, y
	}
	shown.Head = float64(len(shown.Keys)+2) * lineHeight
	shown.Foot = shown.Head + height + lineHeight/2
	shown.Full = shown.Foot + lineHeight/2
	var text bytes.Buffer
	if err := svgFile.Execute(&text, shown); err != nil {
		return "", err
	}
	return template.HTML(text.String()), nil
}

func (p *Plot) legend() []key {
	keys := make([]key, 0, len(p.Series)+len(p.Levels))
	for i, s := range p.Series {
		keys = append(keys, key{Name: s.Name, Style: stroke(seriesHue(i), seriesDashes(i))})
	}
	for i, l := range p.Levels {
		keys = append(keys, key{Name: l.Name, Style: stroke(levelHue, levelDashes(i))})
	}
	return keys
}

// stroke returns the style of a line, made only of constants of this package.
func stroke(hue string, dashes []float64) template.CSS {
	pattern := "none"
	if len(dashes) > 0 {
		pattern = strings.Trim(fmt.Sprint(dashes), "[]")
	}
	return template.CSS(fmt.Sprintf("stroke:%s;stroke-dasharray:%s", hue, pattern))
}
