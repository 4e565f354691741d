// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	line := func(change func(*Plot)) *Report {
		p := Plot{Title: "p", Kind: Line, Series: []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}}}
		change(&p)
		return &Report{Title: "r", Sections: []Section{{Title: "s", Plots: []Plot{p}}}}
	}
	const at = "report: sections[0].plots[0] (p)"
	for want, r := range map[string]*Report{
		"report: title: empty: must say what it is":             {},
		"report: sections[0].title: empty: must say what it is": {Title: "r", Sections: []Section{{}}},
		"report: sections[0].tables[0] (t).columns: none: must have at least one": {
			Title: "r", Sections: []Section{{Title: "s", Tables: []Table{{Title: "t"}}}},
		},
		"report: sections[0].tables[0] (t).rows[1]: 2 cells: must have 1, as there are columns": {
			Title: "r", Sections: []Section{{Title: "s", Tables: []Table{{Title: "t", Columns: []string{"c"}, Rows: [][]string{{""}, {"", ""}}}}}},
		},
		"report: sections[0].plots[0] ().title: empty: must say what it is":            line(func(p *Plot) { p.Title = "" }),
		at + `.kind: "pie": must be "line", "bars" or "histogram"`:                     line(func(p *Plot) { p.Kind = "pie" }),
		at + `.labels: ["x"]: must be empty, since only bars have labels`:              line(func(p *Plot) { p.Labels = []string{"x"} }),
		at + ".series: none: must have at least one":                                   line(func(p *Plot) { p.Series = nil }),
		at + `.series[1] (a): "a": must have a name of its own`:                        line(func(p *Plot) { p.Series = append(p.Series, p.Series[0]) }),
		at + ".series[0] ().name: empty: must say what it is":                          line(func(p *Plot) { p.Series[0].Name = "" }),
		at + ".series[0] (a): 1 x and 2 y: must have 2 and 2":                          line(func(p *Plot) { p.Series[0].X = []float64{1} }),
		at + ".series[0] (a): no y: must have at least one":                            line(func(p *Plot) { p.Series[0].X, p.Series[0].Y = nil, nil }),
		at + ".series[0] (a): 2 x and 2 y: must have 3 and 2":                          line(func(p *Plot) { p.Kind = Histogram }),
		at + ".series[0] (a).x: [2 1 3]: must be in ascending order":                   line(func(p *Plot) { p.Kind, p.Series[0].X = Histogram, []float64{2, 1, 3} }),
		at + ".series[0] (a): 0 x and 2 y: must have 0 and 1":                          line(func(p *Plot) { p.Kind, p.Labels, p.Series[0].X = Bars, []string{"x"}, nil }),
		at + ".series[0] (a).x[1]: NaN: must be a finite number; leave the point out":  line(func(p *Plot) { p.Series[0].X[1] = math.NaN() }),
		at + ".series[0] (a).y[0]: +Inf: must be a finite number; leave the point out": line(func(p *Plot) { p.Series[0].Y[0] = math.Inf(1) }),
		at + ".series[0] (a).y[1]: 0: must be above 0 on a logarithmic axis":           line(func(p *Plot) { p.LogY, p.Series[0].Y[1] = true, 0 }),
		at + ".levels[0].name: empty: must say what it is":                             line(func(p *Plot) { p.Levels = []Level{{"", 1}} }),
		at + ".levels[0].y[0]: -Inf: must be a finite number; leave the point out":     line(func(p *Plot) { p.Levels = []Level{{"l", math.Inf(-1)}} }),
		at + ".yMax: -1: must be a number above 0, or 0 for none":                      line(func(p *Plot) { p.YMax = -1 }),
		at + ": logY false, yMax 2: must be false and 0, since bars are drawn from 0 to their ends": line(func(p *Plot) {
			p.Kind, p.Labels, p.Series[0].X, p.YMax = Bars, []string{"x", "y"}, nil, 2
		}),
	} {
		var text bytes.Buffer
		for name, err := range map[string]error{"HTML": r.WriteHTML(&text), "CSV": r.WriteCSV(&text), "JSON": r.WriteJSON(&text)} {
			if err == nil || err.Error() != want {
				t.Errorf("%s: error %v; want %s", name, err, want)
			}
		}
		if text.Len() > 0 {
			t.Errorf("%s: %d bytes were written all the same", want, text.Len())
		}
	}
}
