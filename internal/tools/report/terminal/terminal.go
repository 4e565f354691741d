// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal shows figures to whoever sits before a terminal: tables, charts, colours and progress. Anything
// else gets the same tables and charts as plain text, and no progress.
package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/guptarohit/asciigraph"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/stagger-go/stagger/internal/tools/report"
)

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is the colours of a text; the zero Style has none.
type Style struct{ Colours bool }

// StyleOf is the style for a writer: it has colours if that is a terminal, unless NO_COLOR is set
// (https://no-color.org) or TERM is dumb.
func StyleOf(w io.Writer) Style {
	return Style{Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Error is for what is wrong, and for what is not done.
func (s Style) Error(words string) string { return s.write(words, text.FgRed) }

// Warning is for warnings, and for what is done in part.
func (s Style) Warning(words string) string { return s.write(words, text.FgYellow) }

// Success is for what is done.
func (s Style) Success(words string) string { return s.write(words, text.FgGreen) }

// Title is for names of parts.
func (s Style) Title(words string) string { return s.write(words, text.Bold) }

// Faint is for what matters less.
func (s Style) Faint(words string) string { return s.write(words, text.Faint) }

func (s Style) write(words string, c text.Color) string {
	if !s.Colours || words == "" {
		return words
	}
	return text.Escape(words, c.EscapeSeq())
}

// Of each chart.
const (
	chartHeight = 6

	// ChartCut is where a chart ends, in times its level: what is above would flatten the rest.
	ChartCut = 3
	// ChartMargin is the columns before the first value, for levels of less than 30,000.
	ChartMargin = 7
)

var chartColours = []asciigraph.AnsiColor{asciigraph.DodgerBlue, asciigraph.Red, asciigraph.Orange, asciigraph.Green}

// Chart draws values, at least two, against a dotted level, in so many columns; 0 is one for each value. The colour
// counts from 0.
func Chart(values []float64, level float64, columns int, s Style, colour int) string {
	cut := make([]float64, len(values))
	for i, v := range values {
		cut[i] = min(v, ChartCut*level)
	}
	options := []asciigraph.Option{
		asciigraph.Height(chartHeight), asciigraph.Width(columns), asciigraph.LowerBound(0), asciigraph.UpperBound(ChartCut * level),
		asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%5.0f", v) }),
		asciigraph.SeriesChars(asciigraph.CreateCharSet("┄"), asciigraph.DefaultCharSet),
	}
	if s.Colours {
		options = append(options, asciigraph.SeriesColors(asciigraph.Gray, chartColours[colour%len(chartColours)]))
	}
	return asciigraph.PlotMany([][]float64{slices.Repeat([]float64{level}, len(cut)), cut}, options...)
}

// Progress is a bar that moves, with the time that is left. A nil Progress shows nothing. It may be used by several
// goroutines at once.
type Progress struct{ bar *progressbar.ProgressBar }

const progressSteps = 1000

// NewProgress is a bar on w; nil if w is no terminal.
func NewProgress(w io.Writer, title string) *Progress {
	if !Is(w) {
		return nil
	}
	return newProgress(w, title)
}

func newProgress(w io.Writer, title string) *Progress {
	return &Progress{progressbar.NewOptions(progressSteps, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond))}
}

// Title changes the text before the bar.
func (p *Progress) Title(title string) {
	if p != nil {
		p.bar.Describe(title)
	}
}

// Set moves the bar to the part that is done, 0 to 1.
func (p *Progress) Set(part float64) {
	if p != nil {
		_ = p.bar.Set(min(int(part*progressSteps), progressSteps-1)) // a bar that cannot be drawn is none
	}
}

// Clear takes the bar off the screen until it moves on.
func (p *Progress) Clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

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
