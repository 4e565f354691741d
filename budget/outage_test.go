// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/testkit"
)

// outageOf returns a default bucket whose last attempts have failed, and the time.
func outageOf(t *testing.T, failures int) (Budget, time.Time) {
	t.Helper()
	b := testkit.Must(New(Default()))(t)
	for range failures {
		b.Observe(t0, EventAttemptFailed)
	}
	return b, t0
}

func answerOf(b Budget, now time.Time, c Cause) Answer {
	answer, _ := b.Allow(now, c)
	return answer
}

func TestBucketOutage_FiveInARow(t *testing.T) {
	t.Parallel()
	b, now := outageOf(t, AllFail-1)
	b.Observe(now, EventAnswered)
	for range AllFail - 1 {
		b.Observe(now, EventAttemptFailed)
	}
	if got := answerOf(b, now, CauseFailure); got != Yes {
		t.Errorf("four in a row: %v; want yes", got)
	}
	b.Observe(now, EventUnconnected)
	for c, want := range map[Cause]Answer{CauseFailure: Later, CauseWaited: Later, CauseReconnected: Later, CauseOvertaken: Yes} {
		if got := answerOf(b, now, c); got != want {
			t.Errorf("five in a row, cause %d: %v; want %v", c, got, want)
		}
	}
	b.Observe(now, EventCallSucceeded)
	if got := answerOf(b, now, CauseFailure); got != Yes {
		t.Errorf("after a success: %v; want yes", got)
	}
}

// While nothing is sent, one waiting call after the other asks the server, for the cost of a retry.
func TestBucketOutage_Asks(t *testing.T) {
	t.Parallel()
	b, now := outageOf(t, AllFail)
	for i := range 4 {
		if got := answerOf(b, now.Add(Probe-1), CauseWaited); got != Later {
			t.Errorf("question %d, early: %v; want later", i, got)
		}
		now = now.Add(Probe)
		if first, second := answerOf(b, now, CauseWaited), answerOf(b, now, CauseWaited); first != Yes || second != Later {
			t.Errorf("question %d: %v, %v; want yes, later", i, first, second)
		}
	}
	if got := answerOf(b, now.Add(Probe), CauseWaited); got != Later {
		t.Errorf("with an empty bucket: %v; want later", got)
	}
	if got := answerOf(b, now.Add(Probe), CauseReconnected); got != Yes {
		t.Errorf("with an empty bucket, reconnected: %v; want yes, since it is free", got)
	}
}

// Calls return 1, 2, 4 at a time. One that isn't answered lets none return, and one that isn't sent gives its place back.
func TestBucketOutage_Return(t *testing.T) {
	t.Parallel()
	for _, cause := range []Cause{CauseWaited, CauseReconnected} {
		b, now := outageOf(t, 2*AllFail)
		b.Observe(now, EventAnswered)
		var running []func(time.Time, End)
		ask := func() (n int) {
			for {
				answer, ended := b.Allow(now, cause)
				if answer != Yes {
					return n
				}
				running = append(running, ended)
				n++
			}
		}
		end := func(how End) {
			for _, ended := range running {
				ended(now, how)
			}
			running = nil
		}
		for i, row := range []struct {
			want int
			how  End
		}{{1, EndHelped}, {2, EndUnsent}, {2, EndHelped}, {4, EndHelped}, {8, EndFailed}, {0, EndFailed}} {
			if got := ask(); got != row.want {
				t.Errorf("cause %d, round %d: %d return; want %d", cause, i, got, row.want)
			}
			end(row.how)
		}
		now = now.Add(Probe)
		if got := ask(); got != 0 {
			t.Errorf("cause %d: %d return without an answer; want none", cause, got)
		}
		b.Observe(now, EventAnswered)
		if got := ask(); got != 1 {
			t.Errorf("cause %d: %d return after an answer; want 1", cause, got)
		}
	}
}

// The return also costs what a retry costs, even from a large bucket, and a second outage ends it.
func TestBucketOutage_Again(t *testing.T) {
	t.Parallel()
	b, now := outageOf(t, AllFail)
	b.Observe(now, EventCallSucceeded)
	for range AllFail {
		b.Observe(now, EventAttemptFailed)
	}
	if got := answerOf(b, now, CauseWaited); got != Later {
		t.Errorf("in the second outage: %v; want later", got)
	}
	b.Observe(now, EventCallSucceeded)
	before := b.(Stater).State(now).Balance
	if got := answerOf(b, now, CauseWaited); got != Yes || b.(Stater).State(now).Balance != before-1 {
		t.Errorf("%v, %v left of %v; want yes, for 1", got, b.(Stater).State(now).Balance, before)
	}
}

// After a success, an empty bucket holds a retry for the first return.
func TestBucketOutage_EmptyBucket(t *testing.T) {
	t.Parallel()
	b, now := outageOf(t, 0)
	for range 4 {
		b.Allow(now, CauseFailure)
	}
	for range AllFail {
		b.Observe(now, EventAttemptFailed)
	}
	b.Observe(now, EventCallSucceeded)
	if got := answerOf(b, now, CauseWaited); got != Yes {
		t.Errorf("%v; want yes", got)
	}
	if got := answerOf(b, now, CauseFailure); got != No {
		t.Errorf("then a retry: %v; want no", got)
	}
}

// Without an outage, what has never left the client returns at once, whatever the bucket has.
func TestReconnected_Free(t *testing.T) {
	t.Parallel()
	size0 := Default()
	size0.Size = 0
	for _, c := range []Config{Default(), size0} {
		b := testkit.Must(New(c))(t)
		for range 10 {
			if got := answerOf(b, t0, CauseReconnected); got != Yes {
				t.Errorf("%+v: %v; want yes", c, got)
			}
		}
	}
}

// gRPC's throttle never lets a call wait.
func TestThrottle_NeverLater(t *testing.T) {
	t.Parallel()
	b := testkit.Must(New(ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}))(t)
	for range 20 {
		b.Observe(t0, EventAttemptFailed)
		b.Observe(t0, EventUnconnected)
		b.Observe(t0, EventAnswered)
		for c := CauseFailure; c <= CauseReconnected; c++ {
			if got := answerOf(b, t0, c); got == Later {
				t.Errorf("cause %d: later", c)
			}
		}
	}
}
