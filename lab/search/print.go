// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

func every(*judged) bool { return true }

func notWarned(j *judged) bool { return len(j.Warned) == 0 }

// countTable returns how often each player is worse than no retries.
func countTable(title string, list []*judged, keep func(*judged) bool) report.Table {
	t := report.Table{Title: title, Columns: []string{
		"player", "scenarios", "worse by > 1", "> 3", "> 10 points", "> 3, %", "below half", "never recover", "gain, points", "requests a call",
	}}
	for _, p := range players {
		s := count(list, p.name, keep)
		row := []string{s.Player, strconv.Itoa(s.Scenarios)}
		for _, n := range []int{s.Over1, s.Over3, s.Over10} {
			row = append(row, strconv.Itoa(n))
		}
		row = append(row, fmt.Sprintf("%.1f", 100*float64(s.Over3)/float64(max(s.Scenarios, 1))))
		for _, n := range []int{s.Half, s.Never} {
			row = append(row, strconv.Itoa(n))
		}
		t.Rows = append(t.Rows, append(row, fmt.Sprintf("%+.2f", 100*s.Gain), fmt.Sprintf("%.3f", s.PerCall)))
	}
	return t
}

// worst returns the scenarios in which a player loses most, at most n.
func worst(list []*judged, name string, n int) []*judged {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *judged) int {
		switch la, lb := a.loss(name), b.loss(name); {
		case la > lb:
			return -1
		case la < lb:
			return 1
		default:
			return 0
		}
	})
	sorted = sorted[:min(n, len(sorted))]
	return slices.DeleteFunc(sorted, func(j *judged) bool { return j.loss(name) <= suspicious })
}

// seedTable returns how often the default, and gRPC's retries, are worse, by the scenarios' seed.
func seedTable(list []*judged) report.Table {
	t := report.Table{Title: "By seed", Columns: []string{"seed", "player", "> 1", "> 3", "> 10 points", "below half", "never recover", "gain, points"}}
	var known []uint64
	for _, j := range list {
		if slices.Contains(known, j.Seed) {
			continue
		}
		known = append(known, j.Seed)
		for _, name := range []string{grpcPlayer, defaultPlayer} {
			s := count(list, name, func(other *judged) bool { return other.Seed == j.Seed })
			row := []string{strconv.FormatUint(j.Seed, 10), name}
			for _, n := range []int{s.Over1, s.Over3, s.Over10, s.Half, s.Never} {
				row = append(row, strconv.Itoa(n))
			}
			t.Rows = append(t.Rows, append(row, fmt.Sprintf("%+.2f", 100*s.Gain)))
		}
	}
	return t
}

// tables returns all tables.
func tables(list []*judged) []report.Table {
	warned := len(list) - count(list, defaultPlayer, notWarned).Scenarios
	found := []report.Table{
		countTable(fmt.Sprintf("%d scenarios", len(list)), list, every),
		countTable(fmt.Sprintf("Without the %d settings (%.1f %%) that lint warns of, or a Retrier within 100 calls", warned, 100*float64(warned)/float64(len(list))), list, notWarned),
	}
	if by := seedTable(list); len(by.Rows) > 2 {
		found = append(found, by)
	}
	return found
}

// show writes the results.
func show(out io.Writer, list []*judged, o options) {
	for _, t := range tables(list) {
		fmt.Fprintf(out, "%s\n\n", terminal.Table(t, terminal.Style{}, ""))
	}
	fmt.Fprintf(out, "The worst of %q:\n\n", o.player)
	for i, j := range worst(list, o.player, 10) {
		own, none := j.Players[o.player], j.Players[noRetries]
		fmt.Fprintf(out, "%2d. seed %d, scenario %d: %.1f points worse (± %.1f), under the first seed %.1f for %.1f %%, %.2f requests a call\n    %s\n",
			i+1, j.Seed, j.Index, 100*j.loss(o.player), 100*j.deviation(o.player), 100*own[0].Success, 100*none[0].Success, own[0].PerCall, j.Words)
		for _, w := range j.Warned {
			fmt.Fprintf(out, "    warned: %s\n", w)
		}
	}
}
