// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
)

// table is a table of results.md, between marks of its name.
type table struct {
	name, what string
	columns    []column
	rows       func(options) ([]row, error) // the results of one process
	once       bool                         // one process measures it: that takes long, and varies little
}

// column formats the results of all processes.
type column struct {
	name  string
	print func(quartiles) string
}

// row has the results of one process for a client.
type row struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"` // by columns
}

// found returns the table of all processes' results.
func (t table) found(processes [][]row) report.Table {
	shown := report.Table{Columns: []string{"client"}}
	for _, c := range t.columns {
		shown.Columns = append(shown.Columns, c.name)
	}
	off := 0.0 // uncertainty of the medians of the first column
	for i, r := range processes[0] {
		cells := append(make([]string, 0, 1+len(t.columns)), r.Name)
		for k, c := range t.columns {
			values := make([]float64, len(processes))
			for p, rows := range processes {
				values[p] = rows[i].Values[k]
			}
			q := quartilesOf(values)
			if cells = append(cells, c.print(q)); k == 0 && q.median != 0 {
				// The standard error of a median is 1.25 of that of a mean; the quartiles are 1.35 standard deviations apart.
				off = max(off, 1.25/1.35*(q.high-q.low)/q.median/math.Sqrt(float64(len(values))))
			}
		}
		shown.Rows = append(shown.Rows, cells)
	}
	shown.Title = fmt.Sprintf("%s (%d processes; the medians of the first column are known to ± %.1f %%)", t.what, len(processes), 100*off)
	if len(processes) == 1 {
		shown.Title = t.what + " (one process)"
	}
	return shown
}

// ratioCell shows the significant digits.
func ratioCell(q quartiles) string {
	switch q {
	case quartiles{1, 1, 1}:
		return "1"
	case quartiles{}:
		return "–"
	}
	digits := 3
	switch {
	case q.median >= 10:
		digits = 1
	case q.median >= 1.5:
		digits = 2
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, q.median, digits, q.low, digits, q.high)
}

func wholeCell(q quartiles) string { return fmt.Sprintf("%.0f", math.Round(q.median)+0) } // + 0: there is no -0
// durationCell shows nanoseconds with three digits.
func durationCell(q quartiles) string {
	d, step := time.Duration(math.Round(q.median)), time.Nanosecond
	for d >= 1000*step && step < time.Millisecond {
		step *= 10
	}
	text := d.Round(step).String()
	digits := strings.TrimRight(text, "nµms")
	return digits + " " + text[len(digits):]
}

// figures are the figures of tables by their names on pages: "NAME; ROW; COLUMN". "host" is the machine.
type figures map[string]string

func (f figures) add(name string, t report.Table) {
	for _, r := range t.Rows {
		for i, cell := range r[1:] {
			f[name+"; "+r[0]+"; "+t.Columns[1+i]], _, _ = strings.Cut(cell, " (")
		}
	}
}

// quoted is a figure on a page, between two marks.
var quoted = regexp.MustCompile(`<!-- cost: (.*?) -->(.*?)<!-- / -->`)

// quote inserts the figures into the text of a page.
func (f figures) quote(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(old string) string {
		name := quoted.FindStringSubmatch(old)[1]
		if f[name] == "" {
			return old // not measured
		}
		return "<!-- cost: " + name + " -->" + f[name] + "<!-- / -->"
	})
}

// boundsName is the table of docs/evidence/costs.md.
const boundsName = "bounds"

// write writes tables below the repository's root, and their figures into all pages that quote them.
func write(root string, names []string, tables []report.Table) error {
	quotes := figures{"host": host()}
	errs := make([]error, 0, len(tables))
	page, results := filepath.Join(root, "docs", "evidence", "costs.md"), filepath.Join(root, "lab", "compare", "results.md")
	for i, t := range tables {
		path := results
		if names[i] == boundsName {
			path = page
		}
		errs = append(errs, terminal.WriteInto(path, names[i], []report.Table{t}))
		quotes.add(names[i], t)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	errs = append(errs, err)
	more, _ := filepath.Glob(filepath.Join(root, "docs", "evidence", "*.md")) // the pattern is valid
	for _, page := range append(append(pages, more...), results, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err == nil {
			err = os.WriteFile(page, []byte(quotes.quote(string(text))), 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
