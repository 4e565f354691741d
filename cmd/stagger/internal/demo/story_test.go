// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

func TestTimeline(t *testing.T) {
	t.Parallel()
	d := day{&sim.Scenario{Bucket: 200 * ms, Phases: []sim.Phase{
		{Name: "calm", Length: time.Second}, {Name: "blip: short", Length: ms}, {Name: "pulse: long", Length: time.Second},
	}}}
	// A second is five buckets; a label that would overlap its neighbour moves to the right.
	if got, want := timeline(d), strings.Repeat(" ", terminal.ChartMargin+5)+"└blip └pulse"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	results := []result{
		{
			name: "one", perOutage: 3.99, twice: 7, phases: map[string]float64{"blip": 0.123, "one of four": 0.75, "pulse": 0.4},
			Result: outage.Result{Success: 0.5, PerCall: 4, Peak: 12.34, P99: 800 * ms, Recovery: sim.Recovered{State: sim.RecoveryNever}},
		},
		{
			name: stagger, perOutage: 1.1,
			Result: outage.Result{Success: 1, PerCall: 1, Recovery: sim.Recovered{State: sim.RecoveryReturned, Took: 1500 * ms}},
		},
	}
	var text bytes.Buffer
	printResults(screen{Writer: &text}, results)
	for _, want := range []string{
		"one │ 12.3 │ 75.0 │ 3.99 │ never │ 7 │",
		"stagger │ 0.0 │ 0.0 │ 1.10 │ 1.50 │ 0 │",
		"one │ 50.0 │ 0.0 │ 40.0 │ 0.0 │ 4.00 │ 12.3 │ 800 │",
		"stagger │ 100.0 │ 0.0 │ 0.0 │ 0.0 │ 1.00 │ 0.0 │ 0 │",
	} {
		if got := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(got, want) {
			t.Errorf("the tables lack %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("colours where there are none")
	}
	text.Reset()
	printResults(screen{&text, terminal.Style{Colours: true}}, results)
	if !strings.Contains(text.String(), "\x1b[32mstagger") {
		t.Errorf("stagger does not stand out:\n%q", text.String())
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	p := newProgress(screen{Writer: &text}, 2)
	p.enter(3150*ms, &sim.Phase{Name: "blip: every backend fails"})
	p.end(0)
	p.close()
	if got := text.String(); got != "   3.15 s  blip: every backend fails\n\n" {
		t.Errorf("%q; want one line for the phase", got)
	}
}

func TestStory(t *testing.T) {
	t.Parallel()
	set := builtIn(t)
	want := [][]string{
		{
			"1 UNAVAILABLE: backoff",
			"2 RESOURCE_EXHAUSTED: the server's answer: google.rpc.RetryInfo",
			"3 slow: backoff",
			"4 OK: ",
			"3 given up: ",
			"0 call ends: OK: succeeded",
		},
		{"1 UNAVAILABLE: not_idempotent", "0 call ends: UNAVAILABLE: not_idempotent"},
		{"1 UNAVAILABLE: budget_exhausted", "0 call ends: UNAVAILABLE: budget_exhausted"},
	}
	for i, s := range stories() {
		t.Run(s.title, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				told := must.Get(s.play(t.Context(), set))(t)
				var got []string
				for k, l := range told.lines {
					got = append(got, fmt.Sprintf("%d %s: %s", l.attempt, l.outcome, l.reason))
					if l.at.Before(told.begin) || k > 0 && l.at.Before(told.lines[k-1].at) {
						t.Errorf("line %d at %v is before the one above", k, l.at)
					}
				}
				if !slices.Equal(got, want[i]) {
					t.Errorf("lines %q; want %q", got, want[i])
				}
			})
		})
	}
}

func TestStoryOfSlowAttempt(t *testing.T) {
	t.Parallel()
	set := builtIn(t)
	synctest.Test(t, func(t *testing.T) {
		told := must.Get(stories()[0].play(t.Context(), set))(t)
		l := told.lines
		// From the second attempt's end: at least the server's 300 ms, at most a tenth more, and the timeout.
		if got := l[2].at.Sub(l[1].at); got < 500*ms || got > 530*ms {
			t.Errorf("attempt 3 was slow %v after attempt 2 ended; want 500ms to 530ms", got)
		}
	})
}
