// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"testing"
	"time"
)

func TestSeries(t *testing.T) {
	t.Parallel()
	r := Record{
		Scenario: pulse(), Calls: every(func(at time.Duration) bool { return at >= 1200*ms && at < 1400*ms }),
		Requests: [][]Request{{{}, {}, {}}, {{At: 100 * ms}, {At: 1500 * ms}, {At: 1500 * ms}, {At: 3100 * ms}}},
	}
	got := r.Series(0)
	if len(got.At) != 15 || got.At[0] != -0.9 || got.At[14] != 1.9 {
		t.Fatalf("at %v; want 15 buckets from -0.9 s to 1.9 s", got.At)
	}
	if got.Calls[7] != 1000 || got.Good[5] != 1000 || got.Good[6] != 0 || got.Good[7] != 1000 {
		t.Errorf("calls %v, good %v; want 1000/s of both, but nothing good from 0.2 s to 0.4 s", got.Calls, got.Good)
	}
	if got.Requests[0] != 5 || got.Requests[7] != 10 || got.Requests[14] != 0 {
		t.Errorf("requests %v; want those of the last service, 5/s, 10/s in the eighth bucket, and none after the end", got.Requests)
	}
	at, percent := got.Share()
	if len(at) != 15 || percent[6] != 0 || percent[7] != 100 {
		t.Errorf("share %v at %v; want 0 in the seventh bucket, 100 in the eighth", percent, at)
	}
	later := r.Series(time.Second)
	if len(later.At) != 10 || later.Requests[2] != 10 {
		t.Errorf("%+v; want it to begin at the trouble", later)
	}
	empty := Record{Scenario: pulse(), Requests: make([][]Request, 1)}
	none := empty.Series(0)
	if at, _ := none.Share(); len(at) != 0 {
		t.Errorf("without calls there is a share at %v; want none", at)
	}
}
