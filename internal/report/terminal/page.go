// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/report"
)

// WriteInto puts tables, in Markdown, between the lines "<!-- NAME -->" and "<!-- /NAME -->" of a page.
func WriteInto(path, name string, tables []report.Table) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(page), begin+"\n")
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return fmt.Errorf("%s: must have a line %q and a line %q around the tables", path, begin, end)
	}
	var text strings.Builder
	text.WriteString(before + begin + "\n")
	for i, t := range tables {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s:\n\n%s\n", t.Title, strings.TrimSpace(Markdown(t)))
	}
	text.WriteString(end + after)
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// Off says how far two figures of a column may be apart: by Abs, or by the part Rel of the larger one.
type Off struct{ Abs, Rel float64 }

func (o Off) allows(a, b float64) bool {
	return math.Abs(a-b) <= max(o.Abs, o.Rel*max(math.Abs(a), math.Abs(b)))+1e-9
}

// Differences compares tables of a new run with those that WriteInto has put into a page, and returns a line for each cell that a run
// contradicts, and for each row that the page lacks. The page may have more
// tables, rows and columns, and figures in bold. Columns without an Off name a row. Those of
// the others have figures, each with its Off, of which the last is for all that follow; what stands between figures must be equal.
func Differences(path, name string, tables []report.Table, off map[string][]Off) ([]string, error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, marked, found := strings.Cut(string(page), "<!-- "+name+" -->\n")
	marked, _, ended := strings.Cut(marked, "<!-- /"+name+" -->")
	if !found || !ended {
		return nil, fmt.Errorf("%s: has no tables between marks of %q", path, name)
	}
	var list []string
	for _, t := range tables {
		shown := shownRows(marked, t, off)
		for _, row := range t.Rows {
			key := keyOf(t.Columns, row, off)
			old, ok := shown[key]
			if !ok {
				list = append(list, fmt.Sprintf("%s: %q lacks the row %s", path, t.Title, key))
				continue
			}
			for i, column := range t.Columns {
				if off[column] != nil && !near(old[i], row[i], off[column]) {
					list = append(list, fmt.Sprintf("%s: %q, %s, %s: the page has %s, and a run %s",
						path, t.Title, key, column, old[i], row[i]))
				}
			}
		}
	}
	return list, nil
}

// shownRows returns the rows of a page's table that has all columns of t, with only these, by their key.
func shownRows(marked string, t report.Table, off map[string][]Off) map[string][]string {
	list := map[string][]string{}
	_, text, _ := strings.Cut("\n"+marked, "\n"+t.Title+":\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	var header []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if header == nil {
			header = cells
		}
		var row []string
		next := 0 // two columns may have one name: they stand in the order of t's
		for _, column := range t.Columns {
			if i := slices.Index(header[next:], column); i >= 0 && next+i < len(cells) {
				row = append(row, cells[next+i])
				next += i + 1
			}
		}
		if len(row) == len(t.Columns) {
			list[keyOf(t.Columns, row, off)] = row
		}
	}
	return list
}

func keyOf(columns, row []string, off map[string][]Off) string {
	var key []string
	for i, column := range columns {
		if off[column] == nil {
			key = append(key, row[i])
		}
	}
	return strings.Join(key, " | ")
}

var figure = regexp.MustCompile(`\d+(?:\.\d+)?`)

// near reports whether the figures of two cells are those of two runs. Whether they are bold doesn't matter.
func near(a, b string, off []Off) bool {
	a, b = strings.ReplaceAll(a, "**", ""), strings.ReplaceAll(b, "**", "")
	if figure.ReplaceAllString(a, "#") != figure.ReplaceAllString(b, "#") {
		return false
	}
	others := figure.FindAllString(b, -1)
	for i, text := range figure.FindAllString(a, -1) {
		x, _ := strconv.ParseFloat(text, 64) // the expression finds numbers
		y, _ := strconv.ParseFloat(others[i], 64)
		if !off[min(i, len(off)-1)].allows(x, y) {
			return false
		}
	}
	return true
}
