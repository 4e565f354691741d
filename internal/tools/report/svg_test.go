// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestWriteSVG(t *testing.T) {
	t.Parallel()
	p := Plot{
		Title: "Calls & more", XLabel: "seconds", YLabel: "calls per second", Kind: Line, Levels: []Level{{"capacity", 3}},
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
