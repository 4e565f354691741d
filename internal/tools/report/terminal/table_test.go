// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/report"
)

func TestTable(t *testing.T) {
	t.Parallel()
	from := report.Table{Title: "The day", Columns: []string{"client", "success\n%", "time to\nrecover, s", "why"}, Rows: [][]string{
		{"none", "7.25", "never", "many calls fail"},
		{"stagger", "99.00", "0.25", "–"},
	}}
	const want = `┌──────────────────────────────────────────────────┐
│ The day                                          │
├─────────┬─────────┬────────────┬─────────────────┤
│ client  │ success │    time to │ why             │
│         │       % │ recover, s │                 │
├─────────┼─────────┼────────────┼─────────────────┤`
	if got := Table(from, Style{}, "stagger"); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Table(from, Style{Colours: true}, "stagger"); !strings.Contains(got, "\x1b[32mstagger\x1b[0m") || strings.Contains(got, "\x1b[32mnone") {
		t.Errorf("want stagger to stand out:\n%q", got)
	}
	const markdown = "| client | success<br/>% | time to<br/>recover, s | why |\n" +
		"| --- | ---:| ---:| --- |\n" +
		"| none | 7.25 | never | many calls fail |\n" +
		"| stagger | 99.00 | 0.25 | – |"
	if got := Markdown(from); got != markdown {
		t.Errorf("%s\nwant\n%s", got, markdown)
	}
	long := strings.Repeat("x", 100)
	if got := Table(report.Table{Columns: []string{"a"}, Rows: [][]string{{"two " + long}}}, Style{}, ""); !strings.Contains(got, "│ two ") || !strings.Contains(got, long) {
		t.Errorf("a word is broken:\n%s", got)
	}
}

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
