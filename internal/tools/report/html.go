// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package report writes measurements as one self-contained HTML page with plots and tables. The
// page loads nothing and needs no scripts.
package report

import (
	"bytes"
	"cmp"
	_ "embed"
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

// figures returns the plot as a table.
func (p *Plot) figures() Table {
	t := Table{Title: p.Title, Columns: []string{"series", p.XLabel, p.YLabel}}
	for _, s := range p.Series {
		for i, y := range s.Y {
			t.Rows = append(t.Rows, []string{s.Name, number(s.X[i]), number(y)})
		}
	}
	for _, l := range p.Levels {
		t.Rows = append(t.Rows, []string{l.Name, "", number(l.Y)})
	}
	return t
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

// Plot is a drawing of lines. Everything in it must be finite.
type Plot struct {
	Title  string // also the drawing's text for screen readers
	XLabel string
	YLabel string
	Series []Series // at least one, with names of their own
	Levels []Level  // for comparison
	YMax   float64  // end of the values' axis
}

// Series is one set of figures in a plot: a line through its points, in their order.
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
