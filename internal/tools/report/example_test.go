// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"os"

	"github.com/stagger-go/stagger/internal/tools/report"
)

func ExampleReport() {
	r := report.Report{Title: "Outage", Sections: []report.Section{{
		Title: "What arrives",
		Plots: []report.Plot{{
			Title: "Arrivals", XLabel: "time, s", YLabel: "requests per second", Kind: report.Line,
			Series: []report.Series{
				{Name: "stagger", X: []float64{0, 1, 2}, Y: []float64{550, 605, 550}},
				{Name: "retry loop", X: []float64{0, 1, 2}, Y: []float64{550, 2200, 2200}},
			},
			Levels: []report.Level{{Name: "capacity", Y: 1000}},
		}},
	}}}
	if err := r.WriteCSV(os.Stdout); err != nil { // WriteHTML has the same figures, and draws them
		fmt.Println(err)
	}
	// Output:
	// section,figure,name,at,value
	// What arrives,Arrivals,stagger,0,550
	// What arrives,Arrivals,stagger,1,605
	// What arrives,Arrivals,stagger,2,550
	// What arrives,Arrivals,retry loop,0,550
	// What arrives,Arrivals,retry loop,1,2200
	// What arrives,Arrivals,retry loop,2,2200
	// What arrives,Arrivals,capacity,,1000
}
