// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes all figures, one a line, under the heading section, figure, name, at, value. For a
// cell of a table, name is the row's first cell and at the column; for a point of a plot, name is the
// series and at its X, a bin's lower edge, or a bar's label; for a level, at is empty. Lines end in
// a line feed.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"section", "figure", "name", "at", "value"}}
	for _, s := range r.Sections {
		for _, p := range s.Plots {
			rows = append(rows, p.lines(s.Title)...)
		}
		for _, t := range s.Tables {
			for _, cells := range t.Rows {
				for i := 1; i < len(cells); i++ {
					rows = append(rows, []string{s.Title, t.Title, cells[0], t.Columns[i], cells[i]})
				}
			}
		}
	}
	return out.WriteAll(rows)
}

func (p *Plot) lines(section string) [][]string {
	var rows [][]string
	for _, s := range p.Series {
		for i, y := range s.Y {
			rows = append(rows, []string{section, p.Title, s.Name, p.at(s, i), number(y)})
		}
	}
	for _, l := range p.Levels {
		rows = append(rows, []string{section, p.Title, l.Name, "", number(l.Y)})
	}
	return rows
}

// at is where the i-th value of s belongs.
func (p *Plot) at(s Series, i int) string {
	if p.Kind == Bars {
		return p.Labels[i]
	}
	return number(s.X[i])
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
