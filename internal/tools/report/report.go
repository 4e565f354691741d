// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package report writes what a measurement found as one self-contained HTML page with plots and
// tables, and its figures as CSV. The page loads nothing from anywhere and needs no scripts.
package report

// Report is the whole page. A Report and what it refers to may be read by several goroutines at once,
// and must not change while one of its methods runs.
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
	Title  string // what a screen reader says of the drawing
	XLabel string
	YLabel string // of the values; for Bars they lie along the drawing's foot
	Kind   Kind
	Labels []string // for Bars alone: their names, from the top
	Series []Series // at least one, with names of their own
	Levels []Level  // for comparison
	YMax   float64  // where the axis of the values ends; 0: after the largest; not for Bars
	LogY   bool     // a logarithmic axis of the values, which must be above 0; not for Bars
	Half   bool     // two beside each other where there is room
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
