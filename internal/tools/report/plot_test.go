// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// box is a position, in points from the foot of the drawing.
type box struct{ left, right, foot, top float64 }

var (
	paths   = regexp.MustCompile(`<path d="([^"]*)"\s*style="([^"]*)"`)
	corners = regexp.MustCompile(`[ML](-?[\d.]+),(-?[\d.]+)`)
	texts   = regexp.MustCompile(`<text x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)<`)
	dataInk = []string{"fill:#0072B2", "stroke:#0072B2", "stroke:#B00020"} // bars, the first line, levels
)

// drawn returns the positions of p's bars, first line and levels, and its texts.
func drawn(t *testing.T, p Plot) (ink map[string][]box, words map[string]box) {
	t.Helper()
	svg, err := p.drawInside()
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ink, words = map[string][]box{}, map[string]box{}
	for _, path := range paths.FindAllStringSubmatch(string(svg), -1) {
		b := box{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
		for _, point := range corners.FindAllStringSubmatch(path[1], -1) {
			x, y := at(point[1]), at(point[2])
			b = box{min(b.left, x), max(b.right, x), min(b.foot, y), max(b.top, y)}
		}
		for _, kind := range dataInk {
			if strings.Contains(path[2], kind) {
				ink[kind] = append(ink[kind], b)
			}
		}
	}
	for _, text := range texts.FindAllStringSubmatch(string(svg), -1) {
		x, y := at(text[1]), -at(text[2])
		words[text[3]] = box{x, x, y, y}
	}
	return ink, words
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1 { // point
		t.Errorf("%s: %.1f; want %.1f", what, got, want)
	}
}

func TestAxisAndLevels(t *testing.T) {
	t.Parallel()
	ink, words := drawn(t, Plot{
		Title: "p", Series: []Series{{Name: "s", X: []float64{1, 2}, Y: []float64{10, 10}}}, Levels: []Level{{"a", 4}, {"b", 7}},
	})
	line, levels := ink["stroke:#0072B2"][0], ink["stroke:#B00020"]
	if len(levels) != 2 {
		t.Fatalf("%d levels; want 2", len(levels))
	}
	near(t, "level at 7", levels[1].foot, (line.foot+levels[0].foot)/2)
	near(t, "its other end", levels[1].top, levels[1].foot)
	near(t, "it goes as far as the line", levels[1].right, line.right)
	if _, ok := words["0"]; !ok {
		t.Errorf("the axes are marked %v; want 0 among them", words)
	}
}

func TestPaletteDiffers(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i := range 35 {
		looks := fmt.Sprint(seriesHue(i), seriesDashes(i))
		if k, ok := seen[looks]; ok {
			t.Errorf("series %d and %d both look like %s", k, i, looks)
		}
		seen[looks] = i
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		from, to float64
		want     []string
	}{
		{0, 12.4, []string{"0", "2", "4", "6", "8", "10", "12"}},
		{0, 8, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
		{0, 0.35, []string{"0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35"}},
		{-1.5, 2, []string{"-1.5", "-1", "-0.5", "0", "0.5", "1", "1.5", "2"}},
		{0, 3.2e6, []string{"0", "500000", "1e+06", "1.5e+06", "2e+06", "2.5e+06", "3e+06"}},
	} {
		var got []string
		for _, mark := range (ticker{}).Ticks(row.from, row.to) {
			got = append(got, mark.Label)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%v to %v: %q; want %q", row.from, row.to, got, row.want)
		}
	}
}

func TestWriteSVG(t *testing.T) {
	t.Parallel()
	p := Plot{
		Title: "Calls & more", XLabel: "seconds", YLabel: "calls per second", Levels: []Level{{"capacity", 3}},
		Series: []Series{{Name: "one <first>", X: []float64{0, 1}, Y: []float64{1, 2}}, {Name: "two", X: []float64{0, 1}, Y: []float64{2, 1}}},
	}
	var text strings.Builder
	if err := p.WriteSVG(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Calls &amp; more: calls per second", "one &lt;first&gt;", ">two<", ">capacity<", ">seconds<", "stroke:#0072b2"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the picture lacks %q:\n%s", want, text.String())
		}
	}
	for d := xml.NewDecoder(strings.NewReader(text.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	p.Series[0].Y[0] = math.NaN()
	if err := p.WriteSVG(io.Discard); err == nil {
		t.Error("a value that is no number: no error")
	}
}
