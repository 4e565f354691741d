// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package report writes measurements as one self-contained HTML page with plots and tables, and their figures as CSV. The
// page loads nothing and needs no scripts.
package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed page.html
var pageText string

// page is filled with a report; html/template escapes every text in it.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"paragraphs": paragraphs,
	"picture":    func(p Plot) (template.HTML, error) { return p.svg() },
	"figures":    func(p Plot) Table { return p.figures() },
	"words":      words,
}).Parse(pageText))

// words reports whether a column has words, not figures: those are aligned left and wrapped.
func words(t Table, column int) bool {
	const longestFigure = 14 // runes
	return slices.ContainsFunc(t.Rows, func(row []string) bool { return utf8.RuneCountInString(row[column]) > longestFigure })
}

// WriteHTML writes the report as one page. Drawings and styles are embedded; the content security policy forbids all else.
// Each plot has its figures in a table. If it fails, nothing has been written.
func (r *Report) WriteHTML(w io.Writer) error {
	var text bytes.Buffer
	if err := page.Execute(&text, r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := text.WriteTo(w)
	return err
}

// paragraphs splits a text at empty lines.
func paragraphs(text string) []string {
	var list []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// figures returns the plot as a table: the lines of the CSV, without its section and its title.
func (p *Plot) figures() Table {
	t := Table{Title: p.Title, Columns: []string{"series", p.XLabel, p.YLabel}}
	for _, cells := range p.lines("") {
		t.Rows = append(t.Rows, cells[2:])
	}
	return t
}

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
			rows = append(rows, []string{section, p.Title, s.Name, p.pointLabel(s, i), number(y)})
		}
	}
	for _, l := range p.Levels {
		rows = append(rows, []string{section, p.Title, l.Name, "", number(l.Y)})
	}
	return rows
}

// pointLabel returns the position of the i-th value of s.
func (p *Plot) pointLabel(s Series, i int) string {
	if p.Kind == Bars {
		return p.Labels[i]
	}
	return number(s.X[i])
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// Report is a page, or the tables of a text. It must not change while one of its methods runs.
type Report struct {
	Title    string
	Text     string // paragraphs, parted by empty lines; plain text
	Sections []Section
}

// Section is a part of the page with a heading: its text, then its plots, then its tables.
type Section struct {
	Title  string
	Text   string // paragraphs, parted by empty lines; plain text
	Tables []Table
	Plots  []Plot
}

// Table is figures in words: the first cell of a row names it.
type Table struct {
	Title   string
	Columns []string   // at least one
	Rows    [][]string // each as long as Columns
}

// Kind is how a plot is drawn.
type Kind string

// The kinds of plots.
const (
	Line      Kind = "line"      // each series is a line through its points, in their order
	Bars      Kind = "bars"      // a horizontal bar for each of the plot's Labels and each series
	Histogram Kind = "histogram" // each series is the outline of Y over the edges X, one more than Y
)

// Plot is a drawing of figures. Everything in it must be finite.
type Plot struct {
	Title  string // also the drawing's text for screen readers
	XLabel string
	YLabel string // of the values; for Bars it is below the drawing
	Kind   Kind
	Labels []string // for Bars alone: their names, from the top
	Series []Series // at least one, with names of their own
	Levels []Level  // for comparison; not for Bars
	YMax   float64  // end of the values' axis
	LogY   bool     // a logarithmic axis of the values, which must be above 0; not for Bars
	Half   bool     // two in a row where there is room
}

// Series is one set of figures in a plot. For Bars, Y has a value for each label and X is empty; for a
// Histogram, X are the edges of the bins, ascending, one more than Y.
type Series struct {
	Name string
	X    []float64
	Y    []float64
}

// Level is a straight line across a plot, at a value.
type Level struct {
	Name string
	Y    float64
}

// MostFrequent returns the keys of counts, the most frequent first; equally frequent ones in their order.
func MostFrequent[K cmp.Ordered](counts map[K]int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
