// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff_test draws the delays of package backoff for many clients, and compares them with the tables of docs/backoff.md.
package backoff_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
)

var write = flag.Bool("write", false, "write the tables into docs/backoff.md")

const (
	clients  = 100
	runs     = 1000
	attempts = 6
	window   = 20 * time.Millisecond
)

var config = backoff.Config{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}

var jitters = []backoff.Jitter{
	backoff.JitterNone, backoff.JitterProportional, backoff.JitterEqual, backoff.JitterFull, backoff.JitterDecorrelated,
}

// arrivals returns when a client sends its retries, if its first attempt fails at 0 and every other one at once.
func arrivals(j backoff.Jitter, random *rand.Rand) []time.Duration {
	c := config
	c.Jitter = j
	var list []time.Duration
	var at, delay time.Duration
	for retry := range attempts - 1 {
		delay = c.Delay(retry, delay, random.Float64())
		at += delay
		list = append(list, at)
	}
	return list
}

// most returns the largest number of times within one window.
func most(times []time.Duration) int {
	slices.Sort(times)
	first, largest := 0, 0
	for i, at := range times {
		for at-times[first] >= window {
			first++
		}
		largest = max(largest, i-first+1)
	}
	return largest
}

func TestMost(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, row := range []struct {
		times []time.Duration
		want  int
	}{
		{nil, 0},
		{[]time.Duration{5}, 1},
		{[]time.Duration{60 * ms, 0, 10 * ms, 19 * ms, 20 * ms, 39 * ms}, 3},
		{[]time.Duration{0, 20 * ms, 40 * ms}, 1},
		{[]time.Duration{0, 0, 0}, 3},
	} {
		if got := most(row.times); got != row.want {
			t.Errorf("%v: %d; want %d", row.times, got, row.want)
		}
	}
}

// The tables are drawn with a fixed seed, so that each run has the same figures.
func TestBackoffPage(t *testing.T) {
	t.Parallel()
	herd := report.Table{
		Title:   "The first retry of 100 clients that failed at the same moment, in 1,000 runs",
		Columns: []string{"jitter", "most retries in 20 ms, on average", "shortest wait, ms", "mean wait, ms", "longest wait, ms"},
	}
	outage := report.Table{
		Title:   "The longest outage, in ms, that nine of ten calls outlast",
		Columns: []string{"attempts"},
		Rows:    [][]string{{"2"}, {"3"}, {"4"}, {"5"}, {"6"}},
	}
	for _, j := range jitters {
		random := rand.New(rand.NewPCG(1, 2))
		worst := 0
		times := make([][]time.Duration, attempts-1) // of each retry
		for range runs {
			first := make([]time.Duration, clients)
			for i := range first {
				list := arrivals(j, random)
				first[i] = list[0]
				for retry, at := range list {
					times[retry] = append(times[retry], at)
				}
			}
			worst += most(first)
		}
		slices.Sort(times[0])
		herd.Rows = append(herd.Rows, []string{
			string(j), fmt.Sprintf("%.0f", float64(worst)/runs), millis(times[0][0]), millis(mean(times[0])), millis(times[0][len(times[0])-1]),
		})
		outage.Columns = append(outage.Columns, string(j))
		for retry, list := range times {
			slices.Sort(list)
			outage.Rows[retry] = append(outage.Rows[retry], millis(list[len(list)/10]))
		}
	}
	const page = "../../docs/backoff.md"
	for name, table := range map[string]report.Table{"herd": herd, "outage": outage} {
		if *write {
			testkit.NoError(t, terminal.WriteInto(page, name, []report.Table{table}))
			continue
		}
		off := map[string][]terminal.Off{}
		for _, column := range table.Columns[1:] {
			off[column] = []terminal.Off{{}}
		}
		for _, line := range testkit.Must(terminal.Differences(page, name, []report.Table{table}, off))(t) {
			t.Errorf("%s: make backoff writes it", line)
		}
	}
}

func mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, at := range times {
		sum += at
	}
	return sum / time.Duration(len(times))
}

// millis returns a time in milliseconds.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f", d.Seconds()*1000)
}
