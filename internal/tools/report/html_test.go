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
		`<tr><th scope="row">pulse</th><td class="words">grpc-middleware</td><td>3.98</td></tr>`, // bars
		`<tr><th scope="row">EQUAL</th><td>20</td><td>0.33</td></tr>`,                            // bins
		`<tr><th scope="row">arrivals</th><td>6</td><td>1050</td></tr>`,                          // points
		`<tr><th scope="row">half</th><td></td><td>500</td></tr>`,                                // levels
		`style="stroke:#d55e00;stroke-dasharray:7 3"/><text x="44" y="54">answers</text>`,        // the legend, as it is drawn:
		`stroke:#D55E00;stroke-width:1.6;stroke-dasharray:7,3`,                                   //
		`style="stroke:#b00020;stroke-dasharray:4 4"/><text x="44" y="90">half</text>`,           // levels too:
		`stroke:#B00020;stroke-width:1.4;stroke-dasharray:4,4`,                                   //
		`height="9" style="fill:#0072b2"/><text x="44" y="36">p50</text>`,                        //
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	r := sample()
	for name, err := range map[string]error{"HTML": r.WriteHTML(full{}), "CSV": r.WriteCSV(full{})} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: error %v; want %v", name, err, errFull)
		}
	}
}

func TestWriteCSV(t *testing.T) {
	t.Parallel()
	r := Report{Title: "r", Sections: []Section{{
		Title: "pulse",
		Plots: []Plot{
			{Title: "arrivals", Kind: Line, Series: []Series{{"a", []float64{0.5, 1}, []float64{2, 1e9}}}, Levels: []Level{{"capacity", 1000}}},
			{Title: "calls", Kind: Bars, Labels: []string{"x", "y"}, Series: []Series{{Name: "n", Y: []float64{1, 2}}}},
			{Title: "delays", Kind: Histogram, Series: []Series{{"FULL", []float64{0, 1, 2}, []float64{0.25, 0.75}}}},
		},
		Tables: []Table{{Title: "t", Columns: []string{"client", "success", "p99, ms"}, Rows: [][]string{{"stagger", "99.9", "7"}}}},
	}}}
	var text bytes.Buffer
	if err := r.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	const want = `section,figure,name,at,value
pulse,arrivals,a,0.5,2
pulse,arrivals,a,1,1e+09
pulse,arrivals,capacity,,1000
pulse,calls,n,x,1
pulse,calls,n,y,2
pulse,delays,FULL,0,0.25
pulse,delays,FULL,1,0.75
pulse,t,stagger,success,99.9
pulse,t,stagger,"p99, ms",7
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", &text, want)
	}
}

// hostile is text that a page must escape.
const hostile = `</script></svg><script src="https://example.com/x.js">alert(1)</script><img src="https://example.com/y.png"> & "quoted" stroke:#000000`

// sample has every kind of plot, and hostile text wherever there is text.
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
	edges := []float64{0, 10, 20, 30, 40, 50}
	small := Plot{
		Title: "Small " + hostile, XLabel: "time, s", YLabel: "per second", Kind: Line, Half: true, YMax: 1500,
		Series: []Series{{Name: "arrivals", X: lines[0].X, Y: lines[0].Y}, {Name: "answers", X: lines[0].X[:30], Y: lines[5].Y[:30]}},
		Levels: []Level{{"capacity", 1000}, {"half", 500}},
	}
	second := small
	second.Title, second.LogY = "Logarithmic", true
	return &Report{
		Title: "Storms " + hostile,
		Text:  "What eleven clients make of eight storms.\n\nEach has servers of its own.",
		Sections: []Section{
			{
				Title: "Pulse", Text: hostile,
				Plots: []Plot{
					{Title: "Arrivals", XLabel: "time, s", YLabel: hostile, Kind: Line, Series: lines, Levels: []Level{{"capacity", 1000}}},
					small, second,
					{
						Title: "Requests per call", YLabel: "requests per call", Kind: Bars, Labels: []string{"no retries", "stagger", "grpc-middleware", hostile[:30]},
						Series: []Series{{Name: "pulse", Y: []float64{1, 1.11, 3.98, 0}}},
					},
					{
						Title: "Latency", YLabel: "ms", Kind: Bars, Labels: []string{"no retries", "stagger"}, Half: true,
						Series: []Series{{Name: "p50", Y: []float64{20, 21}}, {Name: "p99", Y: []float64{400, 120}}, {Name: "p999", Y: []float64{1000, 610}}},
					},
					{
						Title: "Delays", XLabel: "delay, ms", YLabel: "part", Kind: Histogram, Half: true,
						Series: []Series{{"FULL", edges, []float64{0.2, 0.2, 0.2, 0.2, 0.2}}, {"EQUAL", edges, []float64{0, 0, 0.33, 0.33, 0.34}}},
					},
				},
				Tables: []Table{{Title: hostile, Columns: []string{"client", "success\n%", hostile[:20]}, Rows: [][]string{{"stagger", "99.9", "1"}, {hostile, "", ""}}}},
			},
			{Title: "Second", Plots: []Plot{{
				Title: "Nothing but zero", Kind: Line, Series: []Series{{Name: "zero", X: []float64{1}, Y: []float64{0}}},
			}}},
			{Title: "Third", Text: fmt.Sprintf("%d sections have contents.", 3)},
		},
	}
}
