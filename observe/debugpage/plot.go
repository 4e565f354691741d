// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"fmt"
	"strings"
)

// The size of a plot, in its own units. The newest sample is at the right.
const (
	plotWidth  = 300
	plotHeight = 40
)

// plot is the last minutes of one budget, drawn.
type plot struct {
	Balance         string // points of a line
	Granted, Denied string // a path of bars
	Most            uint64 // what the highest bar stands for
}

func newPlot(samples []sample) plot {
	var p plot
	for _, s := range samples {
		p.Most = max(p.Most, s.Granted+s.Denied)
	}
	const step = float64(plotWidth) / maxSamples
	var line, granted, denied strings.Builder
	for i, s := range samples {
		x := plotWidth - step*float64(len(samples)-i)
		fmt.Fprintf(&line, "%.1f,%.1f ", x+step/2, plotHeight*(1-s.Balance))
		if p.Most > 0 {
			unit := float64(plotHeight) / float64(p.Most)
			bar(&granted, x, step, plotHeight, unit*float64(s.Granted))
			bar(&denied, x, step, plotHeight-unit*float64(s.Granted), unit*float64(s.Denied))
		}
	}
	p.Balance, p.Granted, p.Denied = strings.TrimSuffix(line.String(), " "), granted.String(), denied.String()
	return p
}

// bar draws one of a height up from y, if it has any.
func bar(to *strings.Builder, x, width, y, height float64) {
	if height > 0 {
		fmt.Fprintf(to, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, y, width, -height, width)
	}
}
