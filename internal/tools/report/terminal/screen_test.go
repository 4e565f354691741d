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
	if text := Chart([]float64{1, 2}, 1, 0, Style{Colours: true}, 5); !strings.Contains(text, "\x1b") {
		t.Errorf("no colours:\n%s", text)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	t.Run("on a terminal", func(t *testing.T) {
		t.Parallel()
		_, terminal := open(t)
		if NewProgress(terminal, "a blip") == nil {
			t.Error("a terminal shows nothing")
		}
		for want, move := range map[string]func(*Progress){
			"a blip  50%":    func(p *Progress) { p.Set(0.5) },
			"a blip  99%":    func(p *Progress) { p.Set(1) }, // it is not for the bar to say that all is done
			"an outage   0%": func(p *Progress) { p.Title("an outage") },
		} {
			var text strings.Builder
			p := newProgress(&text, "a blip")
			move(p)
			p.Clear()
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in %q", want, text.String())
			}
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		var text strings.Builder
		p := NewProgress(&text, "a blip")
		p.Set(0.5)
		p.Title("an outage")
		p.Clear()
		if p != nil || text.Len() > 0 {
			t.Errorf("it shows %q", text.String())
		}
	})
}
