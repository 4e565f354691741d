// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"
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
	if wide := strings.Split(Chart([]float64{1, 2}, 1, 80, Style{}, 0), "\n"); len([]rune(wide[4])) != ChartMargin+80 {
		t.Errorf("want 80 columns:\n%s", strings.Join(wide, "\n"))
	}
	if text := Chart([]float64{1, 2}, 1, 0, Coloured(), 5); !strings.Contains(text, "\x1b") {
		t.Errorf("no colours:\n%s", text)
	}
}
