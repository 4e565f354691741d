// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stagger-go/stagger/internal/tools/report"
)

const (
	widestColumn  = 60 // characters; longer cells have several lines
	longestFigure = 20
)

// Table is a table for a terminal. Columns of figures stand to the right. The row whose first cell is highlighted
// has the style's colour; "" is none.
func Table(from report.Table, s Style, highlighted string) string {
	t := newTable(from)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Title.Format = text.FormatDefault
	if from.Title != "" {
		t.SetTitle("%s", s.Title(from.Title))
	}
	for _, row := range from.Rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			if highlighted != "" && row[0] == highlighted {
				cell = s.Success(cell)
			}
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	return t.Render()
}

// Markdown is a table for a page, without its title.
func Markdown(from report.Table) string {
	t := newTable(from)
	for _, row := range from.Rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	return t.RenderMarkdown()
}

func newTable(from report.Table) table.Writer {
	t := table.NewWriter()
	header := make(table.Row, len(from.Columns))
	columns := make([]table.ColumnConfig, len(from.Columns))
	for i, name := range from.Columns {
		header[i] = name
		columns[i] = table.ColumnConfig{Number: i + 1, WidthMax: widestColumn, WidthMaxEnforcer: Wrap}
		if figures(from.Rows, i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	return t
}

// figures reports whether a column has nothing but figures, and words for where there is none.
func figures(rows [][]string, column int) bool {
	for _, row := range rows {
		cell := row[column]
		if first, _ := utf8.DecodeRuneInString(cell); cell != "" && cell != "never" && !strings.ContainsRune("0123456789-–", first) ||
			utf8.RuneCountInString(cell) > longestFigure {
			return false
		}
	}
	return true
}

// Wrap breaks lines that are longer, between words only.
func Wrap(cell string, width int) string {
	for word := range strings.FieldsSeq(cell) {
		width = max(width, utf8.RuneCountInString(word))
	}
	return text.WrapSoft(cell, width)
}

// WriteInto puts tables, in Markdown, between the lines "<!-- NAME -->" and "<!-- /NAME -->" of a page.
func WriteInto(path, name string, tables []report.Table) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(page), begin+"\n")
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return fmt.Errorf("%s: must have a line %q and a line %q, between which the tables go", path, begin, end)
	}
	var text strings.Builder
	text.WriteString(before + begin + "\n")
	for i, t := range tables {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s:\n\n%s\n", t.Title, strings.TrimSpace(Markdown(t)))
	}
	text.WriteString(end + after)
	return os.WriteFile(path, []byte(text.String()), 0o644)
}
