// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Under the race detector the fleets take ten times as long, and one thread has no races.

package fleet

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

var write = flag.Bool("write", false, "play up to a million clients, and write the tables into docs/evidence/fleet.md")

// Small fleets behave as docs/evidence/fleet.md says. The implemented scheme reaches the target, and others do not.
func TestTables(t *testing.T) {
	sizes := []int{10, 100, 1_000, 10_000}
	if *write {
		sizes = append(sizes, 100_000, 1_000_000)
	}
	played := playAll(t, sizes)
	found, path := tables(sizes, played), filepath.Join("..", "..", "docs", "evidence", "fleet.md")
	if *write {
		if err := terminal.WriteInto(path, "fleet", found); err != nil {
			t.Error(err)
		}
	}
	for i, s := range schemes() {
		for k, n := range sizes {
			f := played[i][k]
			if s.ours && n >= 1000 && f.misses() != "" {
				t.Errorf("%s, %d clients: misses %s: %+v", s.name, n, f.misses(), f)
			}
			// Savings from before an outage come on top of a tenth from the calls and a tenth from the pool.
			if s.ours && (f.success < leastSuccess || f.beside < leastSuccess || f.outage > 1.21 || f.scripts > mostScripts || f.waste > 0.1) {
				t.Errorf("%s, %d clients: %+v", s.name, n, f)
			}
			if want, ok := missed[s.name]; ok && n == 10_000 && f.misses() != want {
				t.Errorf("%s, %d clients: misses %q; want %q: %+v", s.name, n, f.misses(), want, f)
			}
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	off := []float64{0.1, 0.02, 0.15, 25, 4} // tolerance for the figures of each table
	for i, table := range found[:len(off)] {
		for _, row := range table.Rows {
			want := documented(string(page), table.Title, row[0])
			for k, cell := range row[1:] {
				if k >= len(want) || !alike(cell, want[k], off[i]) {
					t.Errorf("%s, %s, %s: docs/evidence/fleet.md has %q, of fleets that are larger too, and it was %s; write it anew: make fleet",
						table.Title, row[0], table.Columns[k+1], want, cell)
				}
			}
		}
	}
}

// playAll plays every scheme with every number of clients. The figures are in the order of the schemes, then of the sizes.
func playAll(t *testing.T, sizes []int) [][]figures {
	t.Helper()
	all := schemes()
	played := make([][]figures, len(all))
	t.Run("fleets", func(t *testing.T) {
		for i, s := range all {
			played[i] = make([]figures, len(sizes))
			for k, n := range slices.Backward(sizes) { // the largest, which take longest, first
				t.Run(fmt.Sprintf("%s, %d clients", s.name, n), func(t *testing.T) {
					t.Parallel()
					f, err := play(s, n)
					if err != nil {
						t.Error(err)
					}
					played[i][k] = f
				})
			}
		}
	})
	return played
}

// The target, for 10,000 clients.
const (
	leastSuccess = 0.995
	mostPerCall  = 1.2
	mostScripts  = 2000
	mostWaste    = 0.2
)

// misses returns the missed parts of the target, in words; "": none.
func (f *figures) misses() string {
	var list []string
	for _, part := range []struct {
		name   string
		missed bool
	}{
		{"success", f.success < leastSuccess},
		{"requests", math.Round(100*f.outage)/100 > mostPerCall},
		{"scripts", f.scripts > mostScripts},
		{"waste", f.waste > mostWaste},
	} {
		if part.missed {
			list = append(list, part.name)
		}
	}
	return strings.Join(list, ", ")
}

// tables returns one table per figure: a row for each scheme, and a column for each number of clients.
func tables(sizes []int, played [][]figures) []report.Table {
	percent := func(x float64) string { return fmt.Sprintf("%.2f", 100*x) }
	pooled := func(s *scheme, text string) string {
		if s.latency == 0 {
			return "–" // no Redis
		}
		return text
	}
	all := []struct {
		title string
		of    func(*scheme, *figures) string
	}{
		{"Success while 3 % of the requests fail, %", func(_ *scheme, f *figures) string { return percent(f.success) }},
		{"Requests a call while all fail", func(_ *scheme, f *figures) string { return fmt.Sprintf("%.2f", f.outage) }},
		{"Success before and after an outage of 10 s, %", func(_ *scheme, f *figures) string { return percent(f.beside) }},
		{"Scripts a second at Redis", func(s *scheme, f *figures) string { return pooled(s, fmt.Sprintf("%.0f", f.scripts)) }},
		{"Tokens granted and not spent, %", func(s *scheme, f *figures) string { return pooled(s, fmt.Sprintf("%.1f", 100*f.waste)) }},
		{"Misses of the target", func(_ *scheme, f *figures) string { return f.misses() }},
	}
	list := make([]report.Table, 0, len(all))
	for _, figure := range all {
		t := report.Table{Title: figure.title, Columns: []string{"reserve"}}
		for _, n := range sizes {
			t.Columns = append(t.Columns, thousands(n))
		}
		for i, s := range schemes() {
			row := append(make([]string, 0, 1+len(sizes)), s.name)
			for k := range sizes {
				row = append(row, figure.of(&s, &played[i][k]))
			}
			t.Rows = append(t.Rows, row)
		}
		list = append(list, t)
	}
	return list
}

// thousands returns a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// missed returns the parts of the target that other schemes miss, with 10,000 clients.
var missed = map[string]string{
	"local, 0.8 a second each": "requests", "none": "success", "ideal pool": "", "long leases, Redis 1 ms": "success, waste",
}

// documented returns a row of a table on a page.
func documented(page, title, name string) []string {
	_, page, _ = strings.Cut(page, title+":\n")
	_, row, _ := strings.Cut(page, "\n| "+name+" |")
	row, _, _ = strings.Cut(row, "\n")
	cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// alike reports whether two cells are equal, or numbers within the tolerance.
func alike(a, b string, off float64) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, other := strconv.ParseFloat(b, 64)
	if err != nil || other != nil {
		return a == b
	}
	return math.Abs(x-y) <= off
}
