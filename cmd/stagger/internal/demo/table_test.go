// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestTablesShowUnitsAndWhoNeverRecovered(t *testing.T) {
	t.Parallel()
	d := day{phases: []phase{{label: "blip"}}}
	var text bytes.Buffer
	printResults(screen{Writer: &text}, d, []result{
		{name: "one", success: 0.5, perCall: 4, outage: 3.99, peak: 12.34, p99: 800 * ms, twice: 7, phases: map[string]float64{"blip": 0.123}},
		{name: stagger, success: 1, perCall: 1, outage: 1.1, recovery: 1500 * time.Millisecond, returned: true},
	})
	for _, want := range []string{
		"one │ 50.0 │ 4.00 │ 3.99 │ 12.3 │ never │ 800 │ 7 │",
		"stagger │ 100.0 │ 1.00 │ 1.10 │ 0.0 │ 1.5 │ 0 │ 0 │",
		"one │ 12.3 │",
	} {
		if got := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(got, want) {
			t.Errorf("the tables lack %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("colours where there are none")
	}
}

func TestStaggerStandsOutWhereThereAreColours(t *testing.T) {
	t.Setenv("FORCE_COLOR", "1")
	var text bytes.Buffer
	printResults(screen{Writer: &text, colours: true}, day{}, []result{{name: stagger}})
	if !strings.Contains(text.String(), "\x1b") {
		t.Errorf("no colours:\n%s", text.String())
	}
}
