// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// drawing is a plot as the page shows it: with a legend, and its figures in a table.
type drawing struct {
	ID            int // of its own on the page
	Title         string
	Says          string // what the drawing shows, for those who do not see it
	Up, Across    string // what the axes measure
	Half          bool
	Width, Height float64 // in points
	SVG           template.HTML
	Legend        []key
	Figures       grid
}

// key is a line of a legend.
type key struct {
	Name  string
	Bar   bool
	Style template.CSS
}

func (p *Plot) drawing(id int) (drawing, error) {
	d := drawing{ID: id, Title: p.Title, Says: p.says(), Half: p.Half, Legend: p.legend(), Figures: newGrid(p.figures())}
	d.Up, d.Across = p.YLabel, p.XLabel
	if p.Kind == Bars {
		d.Up, d.Across = p.XLabel, p.YLabel
	}
	var err error
	d.SVG, d.Width, d.Height, err = p.svg()
	return d, err
}

func (p *Plot) says() string {
	names := make([]string, 0, len(p.Series)+len(p.Levels))
	for _, s := range p.Series {
		names = append(names, s.Name)
	}
	for _, l := range p.Levels {
		names = append(names, fmt.Sprintf("%s at %.4g", l.Name, l.Y))
	}
	across := ""
	if p.XLabel != "" {
		across = " over " + p.XLabel
	}
	return fmt.Sprintf("%s%s: %s. The figures stand in the table below.", p.YLabel, across, strings.Join(names, ", "))
}

// legend names what is drawn, unless there is nothing to tell apart.
func (p *Plot) legend() []key {
	if p.Kind == Bars && len(p.Series) == 1 && len(p.Levels) == 0 {
		return nil
	}
	var keys []key
	for i, s := range p.Series {
		if p.Kind == Bars {
			keys = append(keys, key{s.Name, true, css("fill:%s", seriesHue(i))})
			continue
		}
		keys = append(keys, key{s.Name, false, stroke(seriesHue(i), seriesDashes(i))})
	}
	for i, l := range p.Levels {
		keys = append(keys, key{l.Name, false, stroke(levelHue, levelDashes(i))})
	}
	return keys
}

func stroke(hue string, dashes []float64) template.CSS {
	pattern := "none"
	if len(dashes) > 0 {
		pattern = strings.Trim(fmt.Sprint(dashes), "[]")
	}
	return css("stroke:%s;stroke-dasharray:%s", hue, pattern)
}

// css is for constants of this package alone.
func css(format string, values ...any) template.CSS {
	return template.CSS(fmt.Sprintf(format, values...))
}

// figures is the plot as a table: a column for each series where they share their X, else a line for
// each point.
func (p *Plot) figures() Table {
	t := Table{Title: p.Title}
	shared := !slices.ContainsFunc(p.Series, func(s Series) bool { return !slices.Equal(s.X, p.Series[0].X) })
	if !shared {
		t.Columns = []string{"series", p.XLabel, p.YLabel}
		for _, s := range p.Series {
			for i, y := range s.Y {
				t.Rows = append(t.Rows, []string{s.Name, p.at(s, i), number(y)})
			}
		}
		return t
	}
	t.Columns = []string{p.XLabel}
	for _, s := range p.Series {
		t.Columns = append(t.Columns, s.Name)
	}
	for i := range p.Series[0].Y {
		row := []string{p.at(p.Series[0], i)}
		for _, s := range p.Series {
			row = append(row, number(s.Y[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
