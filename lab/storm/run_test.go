// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
)

func TestLeastLate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lates  []time.Duration
		repeat int
		runs   int
		want   time.Duration
	}{
		"in time at once":     {[]time.Duration{outage.TooLate}, 2, 1, outage.TooLate},
		"late, but no more":   {[]time.Duration{outage.TooLate + 1}, 0, 1, outage.TooLate + 1},
		"in time then":        {[]time.Duration{outage.TooLate + 1, 0}, 2, 2, 0},
		"the first is best":   {[]time.Duration{60 * ms, 90 * ms, 80 * ms}, 2, 3, 60 * ms},
		"the second is best":  {[]time.Duration{90 * ms, 60 * ms, 80 * ms}, 2, 3, 60 * ms},
		"the last is in time": {[]time.Duration{90 * ms, 60 * ms, 10 * ms}, 2, 3, 10 * ms},
	} {
		runs := 0
		got, err := leastLate(row.repeat, func() ([]result, error) {
			runs++
			return []result{{}, {Result: outage.Result{Late: row.lates[runs-1]}}}, nil // the latest of the clients counts
		})
		if err != nil || runs != row.runs || got[1].Late != row.want {
			t.Errorf("%s: %d runs, %v late, %v; want %d, %v", name, runs, got[1].Late, err, row.runs, row.want)
		}
	}
	broken := errors.New("broken")
	if _, err := leastLate(2, func() ([]result, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v; want %v", err, broken)
	}
}
