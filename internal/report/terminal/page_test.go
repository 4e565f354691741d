// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/report"
)

func TestWriteInto(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	for _, row := range []struct{ before, after string }{
		{"a\n<!-- t -->\nold\n<!-- /t -->\nb\n", "a\n<!-- t -->\none:\n\n| a |\n| --- |\n| x |\n\ntwo:\n\n| a |\n| --- |\n| x |\n<!-- /t -->\nb\n"},
		{"no marks", "no marks"},
	} {
		if err := os.WriteFile(page, []byte(row.before), 0o600); err != nil {
			t.Fatal(err)
		}
		one := report.Table{Title: "one", Columns: []string{"a"}, Rows: [][]string{{"x"}}}
		two := one
		two.Title = "two"
		err := WriteInto(page, "t", []report.Table{one, two})
		if got, _ := os.ReadFile(page); string(got) != row.after || (err == nil) != (row.before != row.after) {
			t.Errorf("%q: %v, %q; want %q", row.before, err, got, row.after)
		}
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("<!-- t -->\n<!-- /t -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	columns := []string{"storm", "from", "success", "recovery"}
	written := report.Table{Title: "one", Columns: columns, Rows: [][]string{
		{"blip", "1", "99.0, 1.20", "0.4 s"}, {"blip", "100", "90.0, 1.00", "never"}, {"pulse", "1", "70.0, 1.00", "–"},
	}}
	if err := WriteInto(page, "t", []report.Table{{Title: "other", Columns: columns}, written}); err != nil {
		t.Fatal(err)
	}
	off := map[string][]Off{"success": {{Abs: 1}, {Rel: 0.1}}, "recovery": {{Abs: 0.1}}}
	for _, row := range []struct {
		cells []string
		says  string // of the difference; "" for none
	}{
		{[]string{"blip", "1", "99.0, 1.20", "0.4 s"}, ""},
		{[]string{"blip", "1", "100, 1.32", "0.3 s"}, ""},
		{[]string{"blip", "1", "97.9, 1.20", "0.4 s"}, `"one", blip | 1, success: the page has 99.0, 1.20, and a run 97.9, 1.20`},
		{[]string{"blip", "1", "99.0, 1.50", "0.4 s"}, "success"},
		{[]string{"blip", "1", "99.0, 1.20", "0.6 s"}, "recovery"},
		{[]string{"blip", "1", "99.0, 1.20", "never"}, "recovery"},
		{[]string{"blip", "100", "90.0, 1.00", "never"}, ""},
		{[]string{"blip", "100", "90.0, 1.00", "0.4 s"}, "recovery"},
		{[]string{"blip", "10", "99.0, 1.20", "0.4 s"}, "lacks the row blip | 10"},
	} {
		now := report.Table{Title: "one", Columns: columns, Rows: [][]string{row.cells}}
		got, err := Differences(page, "t", []report.Table{now}, off)
		if err != nil || (len(got) > 0) != (row.says != "") || !strings.Contains(strings.Join(got, "\n"), row.says) {
			t.Errorf("%q: %q, %v; want %q", row.cells, got, err, row.says)
		}
	}
	part := report.Table{Title: "bold", Columns: []string{"storm", "recovery"}, Rows: [][]string{{"blip", "0.4 s"}}}
	bold := report.Table{Title: "bold", Columns: []string{"storm", "success", "recovery"}, Rows: [][]string{{"blip", "99.0", "**0.4 s**"}}}
	if err := WriteInto(page, "t", []report.Table{written, bold}); err != nil {
		t.Fatal(err)
	}
	for _, cell := range []string{"0.4 s", "**0.4 s**"} {
		part.Rows[0][1] = cell
		if got, err := Differences(page, "t", []report.Table{part}, off); err != nil || len(got) > 0 {
			t.Errorf("a column of a table, of which a figure is bold, and a run's %s: %q, %v; want no difference", cell, got, err)
		}
	}
	twins := report.Table{Title: "twins", Columns: []string{"client", "> 3", "> 3"}, Rows: [][]string{{"a", "1", "2"}, {"b", "3", ""}}}
	if err := WriteInto(page, "t", []report.Table{written, twins, bold}); err != nil {
		t.Fatal(err)
	}
	if got, err := Differences(page, "t", []report.Table{twins}, nil); err != nil || len(got) > 0 {
		t.Errorf("two columns of one name, and an empty cell at the end: %q, %v; want no difference", got, err)
	}
	other := report.Table{Title: "another", Columns: columns, Rows: [][]string{{"blip", "1", "99.0, 1.20", "0.4 s"}}}
	if got, err := Differences(page, "t", []report.Table{other}, off); err != nil || len(got) != 1 {
		t.Errorf("a table that the page lacks: %q, %v; want a difference", got, err)
	}
	if _, err := Differences(page, "none", nil, off); err == nil {
		t.Error("a page without the marks is compared")
	}
}
