// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
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
		`height="9" style="fill:#0072b2"/><text x="44" y="36">pulse</text>`,                      //
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
