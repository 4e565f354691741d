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
	"unicode/utf8"
)

//go:embed page.html
var pageText string

// page is filled with a sheet; html/template escapes every text in it.
var page = template.Must(template.New("page").Parse(pageText))

// sheet is a report as the page shows it.
type sheet struct {
	Title    string
	Text     []string // paragraphs
	Sections []part
}

type part struct {
	Title    string
	Text     []string
	Drawings []drawing
	Tables   []grid
}

// drawing is a plot as the page shows it: with its figures in a table.
type drawing struct {
	Half    bool
	Picture template.HTML
	Figures grid
}

// grid is a table as the page shows it.
type grid struct {
	Table

	Words []bool // which columns hold words and not figures: to the left, in several lines
}

const longestFigure = 14 // runes

func newGrid(t Table) grid {
	g := grid{t, make([]bool, len(t.Columns))}
	for _, row := range t.Rows {
		for i, cell := range row {
			g.Words[i] = g.Words[i] || utf8.RuneCountInString(cell) > longestFigure
		}
	}
	return g
}

// WriteHTML writes the report as one page that loads nothing from anywhere: drawings and styles stand
// in it, and its content security policy forbids the rest. Each plot has its figures in a table. Nothing is
// written before the whole page is made.
func (r *Report) WriteHTML(w io.Writer) error {
	filled, err := r.sheet()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := page.Execute(&text, filled); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = text.WriteTo(w)
	return err
}

func (r *Report) sheet() (sheet, error) {
	all := sheet{Title: r.Title, Text: paragraphs(r.Text)}
	for _, s := range r.Sections {
		shown := part{Title: s.Title, Text: paragraphs(s.Text)}
		for _, t := range s.Tables {
			shown.Tables = append(shown.Tables, newGrid(t))
		}
		for _, p := range s.Plots {
			picture, err := p.svg()
			if err != nil {
				return sheet{}, err
			}
			shown.Drawings = append(shown.Drawings, drawing{p.Half, picture, newGrid(p.figures())})
		}
		all.Sections = append(all.Sections, shown)
	}
	return all, nil
}

// paragraphs are the parts of a text between empty lines.
func paragraphs(text string) []string {
	var list []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// figures is the plot as a table: the lines of the CSV, without its section and its title.
func (p *Plot) figures() Table {
	t := Table{Title: p.Title, Columns: []string{"series", p.XLabel, p.YLabel}}
	for _, cells := range p.lines("") {
		t.Rows = append(t.Rows, cells[2:])
	}
	return t
}
