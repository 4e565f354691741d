// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestPhasesStandBelowTheirTime(t *testing.T) {
	t.Parallel()
	d := day{phases: []phase{{length: time.Second}, {label: "blip", length: ms}, {label: "pulse", length: time.Second}}}
	// A second is five buckets; what would lie on its neighbour moves to the right.
	if got, want := timeline(d), strings.Repeat(" ", margin+5)+"└blip └pulse"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestAChartBeginsAtTheMarginAndIsCutOff(t *testing.T) {
	t.Parallel()
	d := day{fleet: shape{backends: 1, workers: 1, service: 10 * ms}, phases: []phase{{length: time.Second}}}
	flood := make([]time.Duration, 1000) // all at once
	var text bytes.Buffer
	printCharts(screen{Writer: &text}, d, []contender{{name: "a client"}}, []record{{requests: flood}})
	lines := strings.Split(text.String(), "\n")
	for i, want := range map[int]string{3: "300", 7: "100", 9: "0"} { // thrice the capacity, the capacity, none
		label, plot := []rune(lines[i])[:margin], []rune(lines[i])[margin:]
		if got := strings.Fields(string(label))[0]; got != want {
			t.Errorf("line %d is at %s; want %s:\n%s", i, got, want, text.String())
		}
		if len(plot) > int(time.Second/bucket) {
			t.Errorf("line %d has %d columns; want one for each bucket", i, len(plot))
		}
	}
}
