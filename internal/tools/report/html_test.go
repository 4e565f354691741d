// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func rendered(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := sample().WriteHTML(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestHTMLEscapes(t *testing.T) {
	t.Parallel()
	text := string(rendered(t))
	for _, tag := range []string{"<script", "<img", "</script", "url(", "@import"} {
		if strings.Contains(text, tag) {
			t.Errorf("the page contains %q", tag)
		}
	}
	if !strings.Contains(text, "&lt;script src=") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page lacks the text of its title, or a style was refused by html/template")
	}
}

func TestHTMLRepeats(t *testing.T) {
	t.Parallel()
	if !bytes.Equal(rendered(t), rendered(t)) {
		t.Error("two pages of one report differ")
	}
}

func TestHTMLHasFiguresOfPlots(t *testing.T) {
	t.Parallel()
	text := string(rendered(t))
	for _, want := range []string{
		`<tr><th scope="row">arrivals</th><td>6</td><td>1050</td></tr>`,                   // points
		`<tr><th scope="row">half</th><td></td><td>500</td></tr>`,                         // levels
		`style="stroke:#d55e00;stroke-dasharray:7 3"/><text x="44" y="54">answers</text>`, // the legend, as it is drawn:
		`stroke:#D55E00;stroke-width:1.6;stroke-dasharray:7,3`,                            //
		`style="stroke:#b00020;stroke-dasharray:4 4"/><text x="44" y="90">half</text>`,    // levels too:
		`stroke:#B00020;stroke-width:1.4;stroke-dasharray:4,4`,                            //
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	t.Parallel()
	if err := sample().WriteHTML(full{}); !errors.Is(err, errFull) {
		t.Errorf("error %v; want %v", err, errFull)
	}
}

// hostile is text that a page must escape.
const hostile = `</script></svg><script src="https://example.com/x.js">alert(1)</script><img src="https://example.com/y.png"> & "quoted" stroke:#000000`

// sample has hostile text wherever there is text.
func sample() *Report {
	var lines []Series
	for i, name := range []string{"stagger", "no retries", "gRPC", "gRPC, throttling", "grpc-middleware", "failsafe", "failsafe, budget", "failsafe, breaker", hostile} {
		s := Series{Name: name}
		for k := range 60 {
			at := float64(k) / 5
			s.X = append(s.X, at)
			s.Y = append(s.Y, 550+500*math.Exp(-(at-6)*(at-6)/float64(1+i))+float64(20*i))
		}
		lines = append(lines, s)
	}
	small := Plot{
		Title: "Small " + hostile, XLabel: "time, s", YLabel: "per second", YMax: 1500,
		Series: []Series{{Name: "arrivals", X: lines[0].X, Y: lines[0].Y}, {Name: "answers", X: lines[0].X[:30], Y: lines[5].Y[:30]}},
		Levels: []Level{{"capacity", 1000}, {"half", 500}},
	}
	return &Report{
		Title: "Storms " + hostile,
		Text:  "What eleven clients make of eight storms.\n\nEach has servers of its own.",
		Sections: []Section{
			{
				Title: "Pulse", Text: hostile,
				Plots: []Plot{
					{Title: "Arrivals", XLabel: "time, s", YLabel: hostile, Series: lines, Levels: []Level{{"capacity", 1000}}},
					small,
				},
				Tables: []Table{{Title: hostile, Columns: []string{"client", "success\n%", hostile[:20]}, Rows: [][]string{{"stagger", "99.9", "1"}, {hostile, "", ""}}}},
			},
			{Title: "Second", Plots: []Plot{{
				Title: "Nothing but zero", Series: []Series{{Name: "zero", X: []float64{1}, Y: []float64{0}}},
			}}},
			{Title: "Third", Text: fmt.Sprintf("%d sections have contents.", 3)},
		},
	}
}
