// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/report"
)

// bound is the most that a figure of a table may be.
type bound struct {
	table, client, column string
	most                  float64
	over                  bool // beyond the figure of the table's first client
}

// ofSuccess is the name of the comparison of calls that succeed at once.
const ofSuccess = "success"

// bounds are what stagger may cost over a connection. Ratios are those of processor time, which other load on the machine disturbs least.
// They depend on the machine: these hold on the slowest one that we have measured, where a call whose first attempt fails costs 1.35 times
// two calls; on another one it was 1.15.
var bounds = []bound{
	{ofSuccess, stagger.name, processor, 1.09, false},
	{ofSuccess, observed.name, processor, 1.11, false},
	{"one failure", stagger.name, processor, 1.38, false},
	{"timeout", stagger.name, processor, 1.25, false},
	{"hedge", ourHedges.name, processor, 1.25, false},
	{shortName, stagger.name, processor, 1.42, false},
	{shortName, ourMetrics.name, processor, 1.64, false},
	{passedName, noPolicy.name, processor, 1.07, false},
	{"server stream", stagger.name, processor, 1.06, false},
	{uploadName, stagger.name, processor, 1.21, false},
	{uploadName, stagger.name, allocated, messages * (60 + messageSize + 2), true}, // kept: a message's field, length and text
}

// check compares the results of all processes, by table, with the bounds of these tables. The error names what is above its bound.
func check(all []table, found map[string][][]row) (report.Table, error) {
	shown := report.Table{Title: "What stagger may cost at most", Columns: []string{"table", "client", "figure", "measured", "at most"}}
	var above []string
	for _, b := range bounds {
		i := slices.IndexFunc(all, func(t table) bool { return t.name == b.table })
		if i < 0 {
			continue
		}
		figure := b.column
		t, processes := all[i], found[b.table]
		measured := t.median(processes, b.client, b.column)
		if b.over {
			figure += ", beyond " + processes[0][0].Name
			measured -= t.median(processes, processes[0][0].Name, b.column)
		}
		digits := 0
		if b.column == processor {
			digits = 3
		}
		shown.Rows = append(shown.Rows, []string{b.table, b.client, figure, fmt.Sprintf("%.*f", digits, measured), fmt.Sprintf("%.*f", digits, b.most)})
		if b.column == processor && measured > b.most || measured >= b.most+0.5 {
			above = append(above, fmt.Sprintf("%s, %s: %s %.*f", b.table, b.client, figure, digits, measured))
		}
	}
	if len(above) == 0 {
		return shown, nil
	}
	return shown, fmt.Errorf("above their bounds: %s", strings.Join(above, "; "))
}

// median returns the median over all processes of a client's figure.
func (t table) median(processes [][]row, client, figure string) float64 {
	k := slices.IndexFunc(t.columns, func(c column) bool { return c.name == figure })
	values := make([]float64, len(processes))
	for p, rows := range processes {
		values[p] = rows[slices.IndexFunc(rows, func(r row) bool { return r.Name == client })].Values[k]
	}
	return quartilesOf(values).median
}
