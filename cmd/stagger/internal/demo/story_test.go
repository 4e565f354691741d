// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

func TestStory(t *testing.T) {
	t.Parallel()
	set := builtIn(t)
	want := [][]string{
		{
			"1 UNAVAILABLE: backoff",
			"2 RESOURCE_EXHAUSTED: the server's word: google.rpc.RetryInfo",
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
				told, err := s.play(t.Context(), set)
				if err != nil {
					t.Fatal(err)
				}
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
		told, err := stories()[0].play(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		l := told.lines
		// From the second attempt's end: at least the server's 300 ms, at most a tenth more, and the timeout.
		if got := l[2].at.Sub(l[1].at); got < 500*ms || got > 530*ms {
			t.Errorf("attempt 3 was slow %v after attempt 2 ended; want 500ms to 530ms", got)
		}
	})
}
