// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report"
)

const legend = `success, goodput: of the calls that began after the lead-in. time to recover: after the trouble, until
99 % of the calls of 250 ms succeed. peak arrivals: at the servers, in 200 ms. requests per call: arrivals
at the servers. In a chain: at the last service. p50, p99, p999: of all calls, including failed ones.
judged: PASS if the client reached its target, and stagger its claims about peers; else MISS; VOID if
this machine was too slow to judge.
`

const stormColumn = "storm"

// table returns the figures of a storm, a row for each client.
func (o *outcome) table() report.Table {
	list := report.Table{Title: o.storm.Title, Columns: []string{
		"client", "success\n%", "goodput\ncalls/s", "time to\nrecover, s", "peak arrivals\n/ capacity", "requests\nper call",
		"p50\nms", "p99\nms", "p999\nms", "judged",
	}}
	for i, x := range o.results {
		list.Rows = append(list.Rows, []string{
			o.clients[i].name, fmt.Sprintf("%.2f", 100*x.Success), fmt.Sprintf("%.0f", x.Goodput), x.Recovery.String(),
			fmt.Sprintf("%.1f", x.Peak), fmt.Sprintf("%.2f", x.PerCall),
			millis(x.P50), millis(x.P99), millis(x.P999), string(x.judgement()),
		})
	}
	return list
}

// verdictTable returns every claim about stagger, with a column for each number of connections and for where retries go.
func verdictTable(outcomes []*outcome) report.Table {
	list := report.Table{Title: "Verdicts", Columns: []string{stormColumn, "what should be", "measured by"}}
	first := len(list.Columns)
	for _, o := range outcomes {
		for _, c := range o.clients {
			if c.ours && !slices.Contains(list.Columns, c.name) {
				list.Columns = append(list.Columns, c.name)
			}
		}
	}
	names := list.Columns[first:]
	list.Columns = append(slices.Clip(list.Columns), "judged", "why")
	for _, o := range outcomes {
		for _, claim := range o.claims() {
			list.Rows = append(list.Rows, o.verdictRow(claim, names))
		}
	}
	return list
}

// claims returns the claims about stagger, each once.
func (o *outcome) claims() (claims []string) {
	for i, c := range o.clients {
		for _, v := range o.results[i].verdicts {
			if c.ours && !slices.Contains(claims, v.claim) {
				claims = append(claims, v.claim)
			}
		}
	}
	return claims
}

// verdictRow returns one claim, for those of stagger's clients to which it applies.
func (o *outcome) verdictRow(claim string, names []string) []string {
	all, why, beside := result{}, "", ""
	is := make([]string, len(names))
	for i, c := range o.clients {
		column := slices.Index(names, c.name)
		for _, v := range o.results[i].verdicts {
			if column < 0 || v.claim != claim {
				continue
			}
			is[column], beside, why = v.is, cmp.Or(beside, v.beside), cmp.Or(why, v.why)
			all.verdicts = append(all.verdicts, v)
		}
	}
	return append(append([]string{o.storm.Title, claim, beside}, is...), string(all.judgement()), why)
}

const worseText = `stagger from one connection, beyond chance and rounding. Requests, peaks and latency are compared only with those of
clients whose success is not lower, because a client that lets calls fail is faster and sends less.`

// worseTable returns the figures in which stagger is worse than a peer, and why.
func worseTable(outcomes []*outcome) report.Table {
	list := report.Table{Title: "Worse than a peer", Columns: []string{stormColumn, "figure", "stagger", "better", "why"}}
	for _, o := range outcomes {
		for _, w := range o.worse() {
			list.Rows = append(list.Rows, []string{w.storm, w.figure, w.is, w.peers, w.why})
		}
	}
	return list
}

func millis(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10)
}
