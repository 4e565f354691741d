// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package report has tables and plots of measurements.
package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

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

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
