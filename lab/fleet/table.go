// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/stagger-go/stagger/internal/tools/report"
)

// playAll plays every scheme with every number of clients, as many at a time as there are processors. The figures stand
// as the schemes do, and then as the sizes. Progress hears which part is done, by several goroutines, but not by two at
// once.
func playAll(sizes []int, progress func(part float64)) ([][]figures, error) {
	all := schemes()
	played, errs := make([][]figures, len(all)), make([]error, len(all))
	for i := range played {
		played[i] = make([]figures, len(sizes))
	}
	var (
		running sync.WaitGroup
		places  = make(chan struct{}, runtime.GOMAXPROCS(0))
		mu      sync.Mutex
		done    int // guarded by mu
	)
	for k := len(sizes) - 1; k >= 0; k-- { // the largest, which take longest, first
		for i, s := range all {
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				f, err := play(s, sizes[k])
				mu.Lock()
				defer mu.Unlock()
				if played[i][k] = f; err != nil {
					errs[i] = err
				}
				done++
				progress(float64(done) / float64(len(all)*len(sizes)))
			})
		}
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return played, nil
}

// The target, for 10,000 clients.
const (
	leastSuccess = 0.995
	mostPerCall  = 1.2
	mostScripts  = 2000
	mostWaste    = 0.2
)

// misses are the parts of the target that were missed, in words; "": none.
func (f *figures) misses() string {
	var list []string
	for _, part := range []struct {
		name   string
		missed bool
	}{
		{"success", f.success < leastSuccess},
		{"requests", math.Round(100*f.outage)/100 > mostPerCall},
		{"scripts", f.scripts > mostScripts},
		{"waste", f.waste > mostWaste},
	} {
		if part.missed {
			list = append(list, part.name)
		}
	}
	return strings.Join(list, ", ")
}

// tables have a figure each: a row for each scheme, and a column for each number of clients.
func tables(sizes []int, played [][]figures) []report.Table {
	percent := func(x float64) string { return fmt.Sprintf("%.2f", 100*x) }
	pooled := func(s *scheme, text string) string {
		if s.latency == 0 {
			return "–" // there is no Redis
		}
		return text
	}
	all := []struct {
		title string
		of    func(*scheme, *figures) string
	}{
		{"Success while 3 % of the requests fail, %", func(_ *scheme, f *figures) string { return percent(f.success) }},
		{"Requests a call while all fail", func(_ *scheme, f *figures) string { return fmt.Sprintf("%.2f", f.outage) }},
		{"Success before and after an outage of 10 s, %", func(_ *scheme, f *figures) string { return percent(f.beside) }},
		{"Scripts a second at Redis", func(s *scheme, f *figures) string { return pooled(s, fmt.Sprintf("%.0f", f.scripts)) }},
		{"Tokens granted and not spent, %", func(s *scheme, f *figures) string { return pooled(s, fmt.Sprintf("%.1f", 100*f.waste)) }},
		{"What is missed of the target", func(_ *scheme, f *figures) string { return f.misses() }},
	}
	list := make([]report.Table, 0, len(all))
	for _, figure := range all {
		t := report.Table{Title: figure.title, Columns: []string{"reserve"}}
		for _, n := range sizes {
			t.Columns = append(t.Columns, thousands(n))
		}
		for i, s := range schemes() {
			row := append(make([]string, 0, 1+len(sizes)), s.name)
			for k := range sizes {
				row = append(row, figure.of(&s, &played[i][k]))
			}
			t.Rows = append(t.Rows, row)
		}
		list = append(list, t)
	}
	return list
}

// thousands is a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
