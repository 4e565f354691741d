// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff_test draws the delays of package backoff for many clients, plays clients that contend and clients that come together, and
// compares the results with docs/evidence/backoff.md, and a table of docs/backoff.md.
package backoff_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
)

var write = flag.Bool("write", false, "write the tables and plots of the pages")

const (
	clients  = 100
	runs     = 1000
	attempts = 6
	window   = 20 * time.Millisecond
)

var config = backoff.Config{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}

// With these first waits, the first retry waits as long on average as with FULL and 100 ms: 50 ms.
const (
	equalInitial        = 200 * time.Millisecond / 3
	decorrelatedInitial = 25 * time.Millisecond
)

var jitters = []backoff.Jitter{
	backoff.JitterNone, backoff.JitterProportional, backoff.JitterEqual, backoff.JitterFull, backoff.JitterDecorrelated,
}

// arrivals returns when a client sends its retries, if its first attempt fails at 0 and every other one at once.
func arrivals(j backoff.Jitter, initial time.Duration, random *rand.Rand) []time.Duration {
	c := config
	c.Jitter, c.Initial = j, initial
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
	first, outage := draws()
	herd, waves := herds(t)
	contention, plots := contention(t)
	plots["waves"] = waves
	wantWavesTold(t, waves.Series[1])
	comparePage(t, "../../docs/backoff.md", "outage", outage)
	for name, table := range map[string]report.Table{"first": first, "herd": herd, "contention": contention} {
		comparePage(t, "../../docs/evidence/backoff.md", name, table)
	}
	for name, plot := range plots {
		comparePlot(t, name, plot)
	}
}

// draws returns the waits before the first retry of clients that fail together, and the outages that calls outlast.
func draws() (first, outage report.Table) {
	first = report.Table{
		Title: "The first retry of 100 clients that failed at the same moment, in 1,000 runs",
		Columns: []string{
			"jitter", "most retries in 20 ms, on average", "shortest wait, ms", "mean wait, ms", "longest wait, ms", "standard deviation, ms",
		},
	}
	outage = report.Table{
		Title:   "The longest outage, in ms, that nine of ten calls outlast",
		Columns: []string{"attempts"},
		Rows:    [][]string{{"2"}, {"3"}, {"4"}, {"5"}, {"6"}},
	}
	for _, j := range jitters {
		row, times := drawFirst(string(j), j, config.Initial)
		first.Rows = append(first.Rows, row)
		outage.Columns = append(outage.Columns, string(j))
		for retry, list := range times {
			slices.Sort(list)
			outage.Rows[retry] = append(outage.Rows[retry], millis(list[len(list)/10]))
		}
	}
	equal, _ := drawFirst("EQUAL, first wait 67 ms", backoff.JitterEqual, equalInitial)
	decorrelated, _ := drawFirst("DECORRELATED, first wait 25 ms", backoff.JitterDecorrelated, decorrelatedInitial)
	first.Rows = append(first.Rows, equal, decorrelated)
	return first, outage
}

// drawFirst returns a row about the first retry, and when each retry of all clients is sent.
func drawFirst(name string, j backoff.Jitter, initial time.Duration) (row []string, times [][]time.Duration) {
	random := rand.New(rand.NewPCG(1, 2))
	worst := 0
	times = make([][]time.Duration, attempts-1) // of each retry
	for range runs {
		firsts := make([]time.Duration, clients)
		for i := range firsts {
			list := arrivals(j, initial, random)
			firsts[i] = list[0]
			for retry, at := range list {
				times[retry] = append(times[retry], at)
			}
		}
		worst += most(firsts)
	}
	slices.Sort(times[0])
	return []string{
		name, fmt.Sprintf("%.0f", float64(worst)/runs), millis(times[0][0]), millis(mean(times[0])), millis(times[0][len(times[0])-1]),
		millis(deviation(times[0])),
	}, times
}

// comparePage compares a table of a page with a new one, or writes it.
func comparePage(t *testing.T, page, name string, table report.Table) {
	t.Helper()
	if *write {
		testkit.NoError(t, terminal.WriteInto(page, name, []report.Table{table}))
		return
	}
	off := map[string][]terminal.Off{}
	for _, column := range table.Columns[1:] {
		off[column] = []terminal.Off{{}}
	}
	for _, line := range testkit.Must(terminal.Differences(page, name, []report.Table{table}, off))(t) {
		t.Errorf("%s: make backoff writes it", line)
	}
}

// comparePlot compares a plot of the page with a new one, or writes it.
func comparePlot(t *testing.T, name string, plot report.Plot) {
	t.Helper()
	path := "../../docs/backoff/" + name + ".svg"
	var fresh bytes.Buffer
	testkit.NoError(t, plot.WriteSVG(&fresh))
	if *write {
		testkit.NoError(t, os.WriteFile(path, fresh.Bytes(), 0o644))
		return
	}
	if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, fresh.Bytes()) {
		t.Errorf("%s is not what make backoff writes (%v): run it and commit", path, err)
	}
}

// deviation returns the standard deviation of times.
func deviation(times []time.Duration) time.Duration {
	m, sum := mean(times), 0.0
	for _, d := range times {
		sum += (d - m).Seconds() * (d - m).Seconds()
	}
	return time.Duration(math.Sqrt(sum/float64(len(times))) * float64(time.Second))
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
