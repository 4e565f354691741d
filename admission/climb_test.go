// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"
)

// grows adds n answers to calls with a second left, 20 ms apart, and reports whether a queue was found to grow.
func grows(n int, took func(i int) time.Duration) bool {
	var c climb
	for i := range n {
		if c.recordAnswer(time.Duration(i)*20*ms, took(i), time.Second) {
			return true
		}
	}
	return false
}

func TestClimb(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		took func(i int) time.Duration
		want bool
	}{
		"fast":                   {func(int) time.Duration { return 20 * ms }, false},
		"slow":                   {func(int) time.Duration { return 800 * ms }, false},
		"a queue at 1.5 times":   {func(i int) time.Duration { return 20*ms + time.Duration(i)*20*ms/3 }, true},
		"a queue, and fast ones": {func(i int) time.Duration { return 20*ms + time.Duration(i-i%2)*20*ms/3 + time.Duration(i%2)*100*ms }, true},
		"up to less than half":   {func(i int) time.Duration { return min(20*ms+time.Duration(i)*20*ms/3, 480*ms) }, false},
		"slower all at once": {func(i int) time.Duration {
			return time.Duration(min(i/50, 1))*700*ms + time.Duration(i)*50*time.Microsecond
		}, false},
		"a little, from slow":        {func(i int) time.Duration { return 600*ms + time.Duration(min(i, 50))*4*ms }, false},
		"every other second, slower": {func(i int) time.Duration { return 50*ms + time.Duration(i/50%2)*600*ms }, false},
	} {
		if got := grows(200, row.took); got != row.want {
			t.Errorf("%s: grows: %v; want %v", name, got, row.want)
		}
	}
}

// Steps of two answers each, as far apart as a step is long: at most a bound, a step or a climb does not count.
func TestClimb_Bounds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		apart   time.Duration // the answers of a step
		heights []int         // in ms
		want    bool
	}{
		"five steps":               {100 * ms, []int{100, 250, 400, 550, 700}, true},
		"four steps":               {100 * ms, []int{100, 300, 500, 700}, false},
		"steps that are too short": {99 * ms, []int{100, 250, 400, 550, 700}, false},
		"to the height":            {100 * ms, []int{100, 225, 350, 475, 600}, false},
		"by the rise":              {100 * ms, []int{300, 390, 480, 570, 660}, false},
		"by less than the rise":    {100 * ms, []int{300, 385, 470, 555, 640}, false},
		"half of it in one leap":   {100 * ms, []int{100, 400, 500, 600, 700}, false},
		"with a level step":        {100 * ms, []int{100, 250, 250, 400, 550, 700}, false},
	} {
		var c climb
		at, got := time.Hour, false
		for _, height := range row.heights {
			took := time.Duration(height) * ms
			got = c.recordAnswer(at, took, 1200*ms) || got
			got = c.recordAnswer(at+row.apart, took, 1200*ms) || got
			at += 10 * ms
		}
		if got != row.want {
			t.Errorf("%s: grows: %v; want %v", name, got, row.want)
		}
	}
}
