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

// MostFrequent returns the keys of counts, the most frequent first; equally frequent ones in their order.
func MostFrequent[K cmp.Ordered](counts map[K]int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
