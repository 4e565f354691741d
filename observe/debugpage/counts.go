// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stagger-go/stagger/policy"
)

// countState counts the decisions of one kind about a method in the last minutes.
type countState struct {
	Method string        `json:"method"` // "other" for methods beyond the first hundred
	Reason policy.Reason `json:"reason"`
	Shadow bool          `json:"shadow"` // mode ENFORCE would have sent another attempt
	Count  int           `json:"count"`
}

// compareCounts orders by method and reason, shadow decisions last.
func compareCounts(a, b countState) int {
	shadow := 0
	if a.Shadow != b.Shadow {
		shadow = 1
		if b.Shadow {
			shadow = -1
		}
	}
	return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Reason, b.Reason), shadow)
}

// countTable has the counts of methods by reason.
type countTable struct {
	Reasons []string // the columns
	Rows    []countRow
}

// countRow has the counts of a method, one per reason.
type countRow struct {
	Method string
	Counts []int
}

// CountTable returns a row per method; the method with most decisions comes first.
func (s retrierState) CountTable() countTable {
	reasons, methods := map[string]bool{}, map[string]map[string]int{}
	for _, c := range s.Counts {
		reason := string(c.Reason)
		if c.Shadow {
			reason = "would " + reason
		}
		reasons[reason] = true
		if methods[c.Method] == nil {
			methods[c.Method] = map[string]int{}
		}
		methods[c.Method][reason] += c.Count
	}
	t := countTable{Reasons: slices.Sorted(maps.Keys(reasons))}
	for method, counts := range methods {
		row := countRow{Method: method}
		for _, reason := range t.Reasons {
			row.Counts = append(row.Counts, counts[reason])
		}
		t.Rows = append(t.Rows, row)
	}
	slices.SortFunc(t.Rows, func(a, b countRow) int {
		return cmp.Or(cmp.Compare(b.sum(), a.sum()), cmp.Compare(a.Method, b.Method))
	})
	return t
}

func (r countRow) sum() (n int) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}
