// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestASeriesCountsByTheTimeAtWhichCallsBeginAndRequestsArrive(t *testing.T) {
	t.Parallel()
	s := sketch()
	r := record{
		calls:    every(func(at time.Duration) bool { return at >= 1200*ms && at < 1400*ms }),
		requests: [][]time.Duration{{0, 0, 0}, {100 * ms, 1500 * ms, 1500 * ms, 3100 * ms}},
	}
	got := follow(s, &r)
	if len(got.at) != 15 || got.at[0] != -0.9 || got.at[14] != 1.9 {
		t.Fatalf("at %v; want 15 buckets from -0.9 s to 1.9 s", got.at)
	}
	if got.calls[7] != 1000 || got.good[5] != 1000 || got.good[6] != 0 || got.good[7] != 1000 {
		t.Errorf("calls %v, good %v; want 1000/s of both, but nothing good from 0.2 s to 0.4 s", got.calls, got.good)
	}
	if got.requests[0] != 5 || got.requests[7] != 10 || got.requests[14] != 0 {
		t.Errorf("requests %v; want those of the last service, 5/s, 10/s in the eighth bucket, and none after the end", got.requests)
	}
	at, percent := got.share()
	if len(at) != 15 || percent[6] != 0 || percent[7] != 100 {
		t.Errorf("share %v at %v; want 0 in the seventh bucket, 100 in the eighth", percent, at)
	}
	if at, _ := follow(s, &record{requests: [][]time.Duration{nil}}).share(); len(at) != 0 {
		t.Errorf("without calls there is a share at %v; want none", at)
	}
}
