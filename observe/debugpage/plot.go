// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"fmt"
	"strings"
	"time"
)

// The size of a plot, in its own units. The newest sample is at the right.
const (
	plotWidth  = 300
	plotHeight = 40
)

// plot is a drawing of the last minutes of one budget.
type plot struct {
	Balance          string    // points of a line
	Granted, Refused string    // a path of bars
	Most             uint64    // the value of the highest bar
	Newest           time.Time // of the rightmost sample
}

// plotLength is the time span of a plot.
const plotLength = maxSamples * interval

func newPlot(samples []sample) plot {
	var p plot
	for _, s := range samples {
		p.Most = max(p.Most, s.Granted+s.Refused)
	}
	const step = float64(plotWidth) / maxSamples
	var line, granted, refused strings.Builder
	for _, s := range samples {
		p.Newest = s.At
		ago := samples[len(samples)-1].At.Sub(s.At)
		x := plotWidth - step*(1+ago.Seconds()/interval.Seconds())
		if x < 0 { // the process was suspended
			continue
		}
		fmt.Fprintf(&line, "%.1f,%.1f ", x+step/2, plotHeight*(1-s.Share))
		if p.Most > 0 {
			unit := float64(plotHeight) / float64(p.Most)
			bar(&granted, x, step, plotHeight, unit*float64(s.Granted))
			bar(&refused, x, step, plotHeight-unit*float64(s.Granted), unit*float64(s.Refused))
		}
	}
	p.Balance, p.Granted, p.Refused = strings.TrimSuffix(line.String(), " "), granted.String(), refused.String()
	return p
}

// Minutes returns a path with a line for each full minute before the newest sample.
func (plot) Minutes() string {
	var path strings.Builder
	const minutes = int(plotLength / time.Minute)
	for i := range minutes - 1 {
		fmt.Fprintf(&path, "M%d 0v%d", plotWidth/minutes*(i+1), plotHeight)
	}
	return path.String()
}

// Times returns the labels below the ends and the middle of a plot.
func (p plot) Times() []string {
	if p.Newest.IsZero() {
		return nil
	}
	var list []string
	for _, ago := range []time.Duration{plotLength, plotLength / 2, 0} {
		list = append(list, p.Newest.Add(-ago).Format(time.TimeOnly))
	}
	return list
}

// bar draws a bar upwards from y, if its height isn't 0.
func bar(to *strings.Builder, x, width, y, height float64) {
	if height > 0 {
		fmt.Fprintf(to, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, y, width, -height, width)
	}
}
