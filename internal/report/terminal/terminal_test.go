// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/report"
)

func TestChart(t *testing.T) {
	t.Parallel()
	text := Chart([]float64{5000, 0, 0, 0, 0}, 100, 0, Style{}, 0)
	lines := strings.Split(text, "\n")
	for i, want := range map[int]string{0: "300", 4: "100", 6: "0"} { // thrice the level, the level, none
		label, plot := []rune(lines[i])[:ChartMargin], []rune(lines[i])[ChartMargin:]
		if got := strings.Fields(string(label))[0]; got != want {
			t.Errorf("line %d is at %s; want %s:\n%s", i, got, want, text)
		}
		if len(plot) > 5 {
			t.Errorf("line %d has %d columns; want one for each value", i, len(plot))
		}
	}
	if want := "       cut off at 3 times ┄; the highest value is 5000"; lines[len(lines)-1] != want {
		t.Errorf("the last line is %q; want %q", lines[len(lines)-1], want)
	}
	if whole := Chart([]float64{300, 0}, 100, 0, Style{}, 0); strings.Contains(whole, "cut off") {
		t.Errorf("nothing is cut off:\n%s", whole)
	}
	if wide := strings.Split(Chart([]float64{1, 2}, 1, 80, Style{}, 0), "\n"); len([]rune(wide[4])) != ChartMargin+80 {
		t.Errorf("want 80 columns:\n%s", strings.Join(wide, "\n"))
	}
	if text := Chart([]float64{1, 2}, 1, 0, Style{Colours: true}, 5); !strings.Contains(text, "\x1b") {
		t.Errorf("no colours:\n%s", text)
	}
}

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
	narrow := Table(from, Style{Columns: 42}, "")
	for line := range strings.Lines(narrow) {
		if n := len([]rune(strings.TrimSpace(line))); n > 42 || !strings.Contains(narrow, "│ many  ") {
			t.Errorf("%d columns; want the words of the last column broken into 42:\n%s", n, narrow)
		}
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
