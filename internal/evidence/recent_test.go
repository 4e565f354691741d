// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// near allows for the width of a histogram's bucket.
func near(got, want time.Duration) bool { return got >= want && got <= want+want/10 }

func TestRecent(t *testing.T) {
	t.Parallel()
	r := newRecent(0.95, 0)
	for i := range samples - 1 {
		r.Record(10*ms, time.Duration(i)*ms)
	}
	if r.Quantile() != 0 {
		t.Errorf("%v of too few samples; want none", r.Quantile())
	}
	for i := range 400 { // one of ten takes 100 ms
		took := 10 * ms
		if i%10 == 0 {
			took = 100 * ms
		}
		r.Record(took, time.Second+time.Duration(i)*10*ms)
	}
	if !near(r.Quantile(), 100*ms) {
		t.Errorf("quantile %v; want 100 ms", r.Quantile())
	}
	for i := range 400 { // two windows later, it is faster
		r.Record(ms, 3*window+time.Duration(i)*10*ms)
	}
	if !near(r.Quantile(), ms) {
		t.Errorf("quantile %v; want 1 ms, since what is old is forgotten", r.Quantile())
	}
}

// A step records latencies at one instant, after which the quantile is known, or not.
type step struct {
	n        int
	took, at time.Duration
	want     time.Duration
}

func TestRecent_Instants(t *testing.T) {
	t.Parallel()
	const start = time.Hour
	for name, tt := range map[string]struct {
		quantile float64
		steps    []step
	}{
		"as many new samples as known ones": {0.9, []step{
			{20, 10 * ms, start, 10 * ms},
			{19, 100 * ms, start, 10 * ms},
			{1, 100 * ms, start, 100 * ms},
		}},
		"a second later": {0.9, []step{
			{20, 10 * ms, start, 10 * ms},
			{5, 100 * ms, start + refresh - 1, 10 * ms},
			{1, 100 * ms, start + refresh, 100 * ms},
		}},
		"one sample beyond the quantile": {1 - 1./32, []step{
			{30, 10 * ms, start, 0},
			{1, 10 * ms, start + refresh, 0},
			{1, 10 * ms, start + 2*refresh, 10 * ms},
		}},
		"one window later":      {0.5, []step{{20, 10 * ms, start, 10 * ms}, {1, 10 * ms, start + window, 10 * ms}}},
		"less than two windows": {0.5, []step{{20, 10 * ms, start, 10 * ms}, {1, 10 * ms, start + 2*window - 1, 10 * ms}}},
		"two windows later":     {0.5, []step{{20, 10 * ms, start, 10 * ms}, {1, 10 * ms, start + 2*window, 0}}},
		"window after window":   {0.5, []step{{21, 10 * ms, start + window, 10 * ms}, {1, 10 * ms, start + 2*window, 10 * ms}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecent(tt.quantile, start)
			for i, s := range tt.steps {
				for range s.n {
					r.Record(s.took, s.at)
				}
				if got := r.Quantile(); !near(got, s.want) {
					t.Errorf("step %d: quantile %v; want %v", i, got, s.want)
				}
			}
		})
	}
}
