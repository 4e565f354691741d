// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"
)

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
