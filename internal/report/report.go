// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package report writes what a measurement found as one self-contained HTML page with plots and
// tables, and its figures as CSV and JSON. The page loads nothing from anywhere and needs no scripts.
package report

// Report is the whole page. A Report and what it refers to may be read by several goroutines at once,
// and must not change while one of its methods runs.
type Report struct {
	Title    string    `json:"title"`          // must not be empty
	Text     string    `json:"text,omitempty"` // paragraphs, parted by empty lines; plain text
	Sections []Section `json:"sections"`
}

// Section is a part of the page with a heading: its text, then its plots, then its tables.
type Section struct {
	Title  string  `json:"title"`          // must not be empty
	Text   string  `json:"text,omitempty"` // paragraphs, parted by empty lines; plain text
	Tables []Table `json:"tables,omitempty"`
	Plots  []Plot  `json:"plots,omitempty"`
}

// Table is figures in words: the first cell of a row names it.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"` // at least one
	Rows    [][]string `json:"rows"`    // each as long as Columns
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
	Title  string   `json:"title"` // must not be empty; what a screen reader says of the drawing
	XLabel string   `json:"xLabel,omitempty"`
	YLabel string   `json:"yLabel,omitempty"` // of the values; for Bars they lie along the drawing's foot
	Kind   Kind     `json:"kind"`
	Labels []string `json:"labels,omitempty"` // for Bars alone: their names, from the top
	Series []Series `json:"series"`           // at least one, with names of their own
	Levels []Level  `json:"levels,omitempty"` // for comparison
	YMax   float64  `json:"yMax,omitempty"`   // where the axis of the values ends; 0: after the largest; not for Bars
	LogY   bool     `json:"logY,omitempty"`   // a logarithmic axis of the values, which must be above 0; not for Bars
	Half   bool     `json:"half,omitempty"`   // two beside each other where there is room
}

// Series is one set of figures in a plot. For Bars, Y has a value for each label and X is empty; for a
// Histogram, X are the edges of the bins, ascending, one more than Y.
type Series struct {
	Name string    `json:"name"` // must not be empty
	X    []float64 `json:"x,omitempty"`
	Y    []float64 `json:"y"`
}

// Level is a straight line across a plot, at a value.
type Level struct {
	Name string  `json:"name"` // must not be empty
	Y    float64 `json:"y"`
}
