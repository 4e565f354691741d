// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

func TestTableOfCosts(t *testing.T) {
	t.Parallel()
	same, more := measure.Quartiles{Low: 1, Median: 1, High: 1}, measure.Quartiles{Low: 0.996, Median: 1.234, High: 12.345}
	o := outcome{
		comparison: comparison{name: "fair", what: "a call at a fair", base: "a", goroutines: []int{1, 8}},
		costs: [][]measure.Cost{
			{{Name: "a", Time: measure.Quartiles{Median: 21_649}, Ratio: same, Allocs: 145, Bytes: 8617.6}, {Name: "b", Time: measure.Quartiles{Median: 74.4}, Ratio: more, Processor: more, Allocs: 0.4}},
			{{Name: "a", Ratio: same}, {Name: "b", Ratio: measure.Quartiles{Low: 9.96, Median: 10.04, High: 20}}},
		},
		absent: []absence{{"fair", "c", unaryOnly}, {"fair", "d", refuses}},
	}
	const want = `### fair

A call at a fair.

| client | × a, 1 goroutine | 8 goroutines | processor × | time | allocations | bytes |
| --- | ---:| ---:| ---:| ---:| ---:| ---:|
| a | 1 | 1 | – | 21.6 µs | 145 | 8618 |
| b | 1.23 (1.00–12.35) | 10.0 (10.0–20.0) | 1.23 (1.00–12.35) | 74 ns | 0 | 0 |

Not there: c (unary calls only); d (refuses these streams).
`
	if got := o.markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	o.goroutines, o.costs = []int{1}, o.costs[:1]
	if got := o.markdown(); !strings.Contains(got, "| client | × a | processor × | time |") {
		t.Errorf("got\n%s\nwant one column of ratios", got)
	}
}

func TestTableOfHeld(t *testing.T) {
	t.Parallel()
	s := memory{name: "fair", what: "what is held", held: []holding{
		{Client: "a", Bytes: 100.4, Committed: 50, Goroutines: 1},
		{Client: "b", Bytes: 50, Committed: 75.6, Goroutines: 2.04},
		{Client: "c", Bytes: 100, Committed: 50, Goroutines: 1},
	}}
	for commits, want := range map[bool]string{false: `### fair

What is held.

| client | bytes | more | goroutines |
| --- | ---:| ---:| ---:|
| a | 100 | 0 | 1.0 |
| b | 50 | -50 | 2.0 |
| c | 100 | 0 | 1.0 |
`, true: `### fair

What is held.

| client | bytes | more | bytes, once committed | more |
| --- | ---:| ---:| ---:| ---:|
| a | 100 | 0 | 50 | 0 |
| b | 50 | -50 | 76 | 26 |
| c | 100 | 0 | 50 | 0 |
`} {
		if s.commits = commits; s.markdown() != want {
			t.Errorf("got\n%s\nwant\n%s", s.markdown(), want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for nanos, want := range map[float64]string{
		1.4: "1 ns", 999.4: "999 ns", 999.6: "1 µs", 1234: "1.23 µs", 12_345: "12.3 µs", 123_456: "123 µs",
		9_996_000: "10 ms", 1_234_567: "1.23 ms", 2_345_678_901: "2.346 s",
	} {
		if got := duration(nanos); got != want {
			t.Errorf("%v: %s; want %s", nanos, got, want)
		}
	}
}
