// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal shows figures on a terminal: tables, charts, colours and progress. Other outputs get the same tables and
// charts as plain text, and no progress.
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

	"github.com/stagger-go/stagger/internal/report"
)

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	if f, ok := w.(Forced); ok {
		w = f.Writer
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is the form of a text. The zero Style has no colours, and lines of any length.
type Style struct {
	Colours bool
	Columns int // of the terminal; 0 is any number
}

// Forced is a writer whose texts have colours, or none, whatever it is.
type Forced struct {
	io.Writer

	Colours bool
}

// StyleOf returns the style for a writer: with its columns if that is a terminal, and with colours unless NO_COLOR is set
// (https://no-color.org), TERM is dumb, or the writer is [Forced] to have others.
func StyleOf(w io.Writer) (s Style) {
	if f, ok := w.(Forced); ok {
		s = StyleOf(f.Writer)
		s.Colours = f.Colours
		return s
	}
	if f, ok := w.(*os.File); ok {
		s.Columns, _, _ = term.GetSize(int(f.Fd())) // 0 if it isn't a terminal
	}
	s.Colours = Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// Error marks errors, and things that are not done.
func (s Style) Error(words string) string { return s.write(words, text.FgRed) }

// Warning marks warnings, and things that are done in part.
func (s Style) Warning(words string) string { return s.write(words, text.FgYellow) }

// Success marks things that are done.
func (s Style) Success(words string) string { return s.write(words, text.FgGreen) }

// Title marks headings.
func (s Style) Title(words string) string { return s.write(words, text.Bold) }

// Faint marks details.
func (s Style) Faint(words string) string { return s.write(words, text.Faint) }

func (s Style) write(words string, c text.Color) string {
	if !s.Colours || words == "" {
		return words
	}
	return text.Escape(words, c.EscapeSeq())
}

// Sizes of charts.
const (
	chartHeight = 6

	// ChartCut is where a chart is cut off, in times its level: higher values would flatten the rest.
	ChartCut = 3
	// ChartMargin is the number of columns before the first value, for levels of less than 30,000.
	ChartMargin = 7
)

var chartColours = []asciigraph.AnsiColor{asciigraph.DodgerBlue, asciigraph.Red, asciigraph.Orange, asciigraph.Green}

// Chart draws values, at least two, against a dotted level, in this number of columns; 0 is one per value. Colours are
// counted from 0. If values are cut off, a line below says up to where they go.
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
	chart := asciigraph.PlotMany([][]float64{slices.Repeat([]float64{level}, len(cut)), cut}, options...)
	if highest := slices.Max(values); highest > ChartCut*level {
		chart += fmt.Sprintf("\n%scut off at %d times ┄; the highest value is %.0f", strings.Repeat(" ", ChartMargin), ChartCut, highest)
	}
	return chart
}

// Progress is a progress bar with the remaining time. A nil Progress shows nothing. Several goroutines may use it in
// parallel.
type Progress struct{ bar *progressbar.ProgressBar }

const progressSteps = 1000

// NewProgress returns a bar on w, or nil if w is not a terminal.
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

// Set moves the bar to the completed part, 0 to 1.
func (p *Progress) Set(part float64) {
	if p != nil {
		_ = p.bar.Set(min(int(part*progressSteps), progressSteps-1)) // a failure to draw the bar is ignored
	}
}

// Clear hides the bar until it moves on.
func (p *Progress) Clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

const (
	widestColumn    = 60 // characters; longer cells have several lines
	narrowestColumn = 4
	longestFigure   = 20
)

// Table returns a table for a terminal. Columns of figures are aligned right. The row whose first cell is highlighted has
// the style's colour; "" is none. If the table is wider than the terminal, cells of several words get more lines.
func Table(from report.Table, s Style, highlighted string) string {
	widest := widestColumn
	text := render(from, s, highlighted, widest)
	for s.Columns > 0 && widest > narrowestColumn && utf8.RuneCountInString(text[:strings.IndexByte(text, '\n')]) > s.Columns {
		widest--
		text = render(from, s, highlighted, widest)
	}
	return text
}

func render(from report.Table, s Style, highlighted string, widest int) string {
	t := newTable(from, widest)
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

// Markdown returns a table for a page, without its title.
func Markdown(from report.Table) string {
	t := newTable(from, widestColumn)
	for _, row := range from.Rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	return t.RenderMarkdown()
}

func newTable(from report.Table, widest int) table.Writer {
	t := table.NewWriter()
	header := make(table.Row, len(from.Columns))
	columns := make([]table.ColumnConfig, len(from.Columns))
	for i, name := range from.Columns {
		header[i] = name
		columns[i] = table.ColumnConfig{Number: i + 1, WidthMax: max(widest, longestWord(name)), WidthMaxEnforcer: Wrap}
		for _, row := range from.Rows {
			columns[i].WidthMax = max(columns[i].WidthMax, longestWord(row[i]))
		}
		if figures(from.Rows, i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	return t
}

// figures reports whether a column has only figures, and words for missing ones.
func figures(rows [][]string, column int) bool {
	for _, row := range rows {
		cell := strings.Trim(row[column], "*") // a bold one
		if first, _ := utf8.DecodeRuneInString(cell); cell != "" && cell != "never" && !strings.ContainsRune("0123456789-–", first) ||
			utf8.RuneCountInString(cell) > longestFigure {
			return false
		}
	}
	return true
}

// Wrap breaks lines longer than width, only between words.
func Wrap(cell string, width int) string {
	lines := strings.Split(text.WrapSoft(cell, max(width, longestWord(cell))), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

func longestWord(cell string) (longest int) {
	for word := range strings.FieldsSeq(text.StripEscape(cell)) {
		longest = max(longest, utf8.RuneCountInString(word))
	}
	return longest
}
