// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/report"
)

// A line that an earlier one covers is named in the legend.
func TestPlot_CoincidingLines(t *testing.T) {
	t.Parallel()
	series := func(name string, y ...float64) report.Series {
		s := report.Series{Name: name, Y: y}
		for i := range y {
			s.X = append(s.X, float64(i))
		}
		return s
	}
	p := report.Plot{Title: "Success", YMax: 100, Series: []report.Series{
		series("no retries", 100, 100, 0, 0, 0, 100, 100, 100, 100, 100),
		series("gRPC's own", 100, 100, 10, 10, 10, 100, 100, 100, 100, 100), // the trouble is what a reader looks at
		series("stagger", 100, 100, 0, 0.4, 0, 100, 100, 100, 100, 100),
		series("capacity", 50, 50, 50, 50, 50, 50, 50, 50, 50, 50),
		series("shorter", 100, 100, 0),
	}}
	var text strings.Builder
	if err := p.WriteSVG(&text); err != nil {
		t.Fatal(err)
	}
	var legend []string
	for _, m := range regexp.MustCompile(`<text x="44" y="\d+" dy="4">(.*?)</text>`).FindAllStringSubmatch(text.String(), -1) {
		legend = append(legend, m[1])
	}
	want := []string{"no retries", "gRPC&#39;s own", "stagger (nearly equal to no retries)", "capacity", "shorter"}
	if !slices.Equal(legend, want) {
		t.Errorf("legend %q; want %q", legend, want)
	}
}
