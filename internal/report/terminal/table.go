// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stagger-go/stagger/internal/report"
)

const widestColumn = 60 // characters; longer cells have several lines

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
		columns[i] = table.ColumnConfig{Number: i + 1, WidthMax: widestColumn, WidthMaxEnforcer: text.WrapSoft}
		if figures(from.Rows, i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	return t
}

// figures reports whether a column has nothing but numbers, and words for where there is none.
func figures(rows [][]string, column int) bool {
	for _, row := range rows {
		switch cell := row[column]; cell {
		case "", "–", "never":
		default:
			if strings.Trim(cell, "0123456789.-") != "" {
				return false
			}
		}
	}
	return true
}
