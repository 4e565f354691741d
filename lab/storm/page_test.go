// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

const docs = "../../docs/evidence/"

// The README's table shows these storms and clients.
var (
	shownStorms  = []string{"blip", "one fails", "one hangs", "outage", "chain outage"}
	shownClients = []string{noRetriesName, "gRPC", "gRPC, throttling", "gRPC, throttling 100/1", "stagger"}
)

// writePages writes the storms with all peers into docs/evidence/storms.md and the README.
func writePages(t *testing.T, list []*outcome) {
	t.Helper()
	write := func(page, mark string, tables ...report.Table) {
		t.Helper()
		must.Do(t, terminal.WriteInto(page, mark, tables))
	}
	write(docs+"storms.md", "storms", sections(list)...)
	claims, lost := missed(list)
	lost.Title = fmt.Sprintf("Of %d claims about stagger from one connection, these do not hold from every number of connections", claims)
	write(docs+"storms.md", "misses", lost)
	worse := report.Table{Title: "Where a peer is better", Columns: []string{"storm", "figure", "stagger", "better"}}
	for _, o := range list {
		for _, w := range o.worse() {
			worse.Rows = append(worse.Rows, []string{o.storm.Title, w.figure, w.own, strings.Join(w.peers, ", ")})
		}
	}
	write(docs+"storms.md", "worse", worse)

	short := report.Table{Title: "Success in % and requests for each call", Columns: append([]string{"storm"}, shownClients...)}
	for _, title := range shownStorms {
		o := list[slices.IndexFunc(list, func(o *outcome) bool { return o.storm.Title == title })]
		row := []string{title}
		for _, name := range shownClients {
			r := o.results[slices.IndexFunc(o.clients, func(c client) bool { return c.name == name })]
			row = append(row, fmt.Sprintf("%.2f, %.2f", 100*r.Success, r.PerCall))
		}
		short.Rows = append(short.Rows, row)
	}
	write("../../README.md", "storms", short)
}

// sections are the tables of storms, each below a heading.
func sections(list []*outcome) (tables []report.Table) {
	for _, o := range list {
		slow := "No attempt timeouts"
		if o.storm.attemptTimeout > 0 {
			slow = fmt.Sprintf("Attempt timeouts of %d ms", o.storm.attemptTimeout.Milliseconds())
		}
		s := report.Table{
			Title:   fmt.Sprintf("### %s: %s\n\n%s", o.storm.Title, o.storm.About, slow),
			Columns: []string{"client", "success, %", "recovery, s", "peak", "requests", "p50, ms", "p99", "p999"},
		}
		for i, c := range o.clients {
			s.Rows = append(s.Rows, slices.Delete(o.results[i].Row(c.name), 2, 3)) // the goodput follows from the success
		}
		tables = append(tables, s)
	}
	return tables
}

// missed returns how many claims about stagger from one connection were judged, and those that do not hold from every number of connections.
func missed(list []*outcome) (claims int, lost report.Table) {
	lost.Columns = []string{"storm", "what should be", "measured by", "stagger", "stagger, 10 conns", "stagger, 100 conns"}
	for _, o := range list {
		first := slices.IndexFunc(o.clients, func(c client) bool { return c.ours })
		for k, v := range o.results[first].verdicts {
			claims++
			same, ok := []string{o.storm.Title, v.claim, v.beside}, true
			for i, c := range o.clients {
				if c.ours {
					same, ok = append(same, o.results[i].verdicts[k].is), ok && o.results[i].verdicts[k].ok
				}
			}
			if !ok {
				lost.Rows = append(lost.Rows, same)
			}
		}
	}
	return claims, lost
}
