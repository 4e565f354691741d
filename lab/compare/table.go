// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/lab/compare/measure"
)

const legend = `× is a client's time over that of another one in the same round: the median of the rounds, and their quartiles.
processor × is the same of what all processors have spent, which varies less on a machine that is busy with other
things. It, times, allocations and bytes are those of one operation with a single goroutine, on both sides of the
connection; medians too.
`

// markdown shows the costs as a table, a column of ratios for each number of goroutines.
func (o outcome) markdown() string {
	t := report.Table{Columns: []string{"client"}}
	for _, n := range o.goroutines {
		switch {
		case len(o.goroutines) == 1:
			t.Columns = append(t.Columns, "× "+o.base)
		case n == 1:
			t.Columns = append(t.Columns, "× "+o.base+", 1 goroutine")
		default:
			t.Columns = append(t.Columns, fmt.Sprintf("%d goroutines", n))
		}
	}
	t.Columns = append(t.Columns, "processor ×", "time", "allocations", "bytes")
	for i, first := range o.costs[0] {
		row := append(make([]string, 0, len(t.Columns)), first.Name)
		for _, costs := range o.costs {
			row = append(row, ratio(costs[i].Ratio))
		}
		t.Rows = append(t.Rows, append(row, ratio(first.Processor), duration(first.Time.Median), whole(first.Allocs), whole(first.Bytes)))
	}
	return titled(o.name, o.what, t) + o.missing()
}

// missing says who took no part.
func (o outcome) missing() string {
	if len(o.absent) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nNot there:")
	for i, a := range o.absent {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %s (%s)", a.Client, a.Why)
	}
	return b.String() + ".\n"
}

// markdown shows what is held as a table, and how much more that is than the first holds.
func (m memory) markdown() string {
	t := report.Table{Columns: []string{"client", "bytes", "more"}}
	if m.commits {
		t.Columns = append(t.Columns, "bytes, once committed", "more")
	} else {
		t.Columns = append(t.Columns, "goroutines")
	}
	first := m.held[0]
	for _, h := range m.held {
		row := []string{h.Client, whole(h.Bytes), whole(h.Bytes - first.Bytes)}
		if m.commits {
			row = append(row, whole(h.Committed), whole(h.Committed-first.Committed))
		} else {
			row = append(row, fmt.Sprintf("%.1f", h.Goroutines))
		}
		t.Rows = append(t.Rows, row)
	}
	return titled(m.name, m.what, t)
}

// titled is a table under its name, and what it shows.
func titled(name, what string, t report.Table) string {
	return fmt.Sprintf("### %s\n\n%s.\n\n%s\n", name, strings.ToUpper(what[:1])+what[1:], terminal.Markdown(t))
}

// ratio shows three digits: more are chance.
func ratio(q measure.Quartiles) string {
	switch q {
	case measure.Quartiles{Low: 1, Median: 1, High: 1}:
		return "1"
	case measure.Quartiles{}:
		return "–"
	}
	digits := 2
	if q.Median >= 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, q.Median, digits, q.Low, digits, q.High)
}

func whole(x float64) string { return fmt.Sprintf("%.0f", math.Round(x)+0) } // + 0: there is no -0

// duration shows nanoseconds with three digits.
func duration(nanos float64) string {
	d, step := time.Duration(math.Round(nanos)), time.Nanosecond
	for d >= 1000*step && step < time.Millisecond {
		step *= 10
	}
	text := d.Round(step).String()
	digits := strings.TrimRight(text, "nµms")
	return digits + " " + text[len(digits):]
}

// printf prints; that nobody reads any more is no error of the comparison.
func printf(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }
