// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
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
