// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// near allows for the width of a histogram's bucket.
func near(got, want time.Duration) bool { return got >= want && got <= want+want/10 }

func TestRecent(t *testing.T) {
	t.Parallel()
	r := New(0.95, 0)
	for i := range samples - 1 {
		r.Record(10*ms, time.Duration(i)*ms)
	}
	if r.Quantile() != 0 || r.Median() != 0 {
		t.Errorf("%v, %v of too few samples; want neither", r.Quantile(), r.Median())
	}
	for i := range 400 { // one of ten takes 100 ms
		took := 10 * ms
		if i%10 == 0 {
			took = 100 * ms
		}
		r.Record(took, time.Second+time.Duration(i)*10*ms)
	}
	if !near(r.Median(), 10*ms) || !near(r.Quantile(), 100*ms) {
		t.Errorf("median %v, quantile %v; want 10 ms and 100 ms", r.Median(), r.Quantile())
	}
	for i := range 400 { // two windows later, it is faster
		r.Record(ms, 3*window+time.Duration(i)*10*ms)
	}
	if !near(r.Quantile(), ms) {
		t.Errorf("quantile %v; want 1 ms, since what is old is forgotten", r.Quantile())
	}
}

func TestRecent_MedianOnly(t *testing.T) {
	t.Parallel()
	r := New(0, 0)
	for i := range 100 {
		r.Record(time.Duration(i)*ms, time.Duration(i)*ms)
	}
	if r.Quantile() != 0 || r.Median() == 0 {
		t.Errorf("quantile %v, median %v; want none, and one", r.Quantile(), r.Median())
	}
}
