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

// waiting are calls that ask to return after an outage.
type waiting struct {
	b     Budget
	cause Cause
	ended []func(time.Time, End)
}

// ask returns how many may return, which then run.
func (w *waiting) ask(now time.Time) (n int) {
	for {
		answer, ended := w.b.Allow(now, w.cause)
		if answer != Yes {
			return n
		}
		w.ended = append(w.ended, ended)
		n++
	}
}

// end ends all that run.
func (w *waiting) end(now time.Time, how End) {
	for _, ended := range w.ended {
		ended(now, how)
	}
	w.ended = nil
}

// One call returns first, and three after each that is answered. One that isn't answered lets none return, but one may always be on its way,
// and one that isn't sent gives its place back. If those on their way hang, another one may return after a while.
func TestBucketOutage_Return(t *testing.T) {
	t.Parallel()
	for _, cause := range []Cause{CauseWaited, CauseReconnected} {
		large := Default()
		large.Size = 100
		b, now := testkit.Must(New(large))(t), t0
		for range 2 * AllFail {
			b.Observe(now, EventAttemptFailed)
		}
		b.Observe(now, EventAnswered)
		w := waiting{b: b, cause: cause}
		for i, row := range []struct {
			want int
			how  End
		}{{1, EndFailed}, {1, EndHelped}, {3, EndUnsent}, {3, EndHelped}, {9, EndFailed}, {1, EndUnsent}} {
			if got := w.ask(now); got != row.want {
				t.Errorf("cause %d, round %d: %d return; want %d", cause, i, got, row.want)
			}
			w.end(now, row.how)
		}
		for i := range 3 {
			if got := w.ask(now); got != 1 {
				t.Errorf("cause %d, wait %d: %d return; want 1", cause, i, got)
			}
			now = now.Add(Probe)
		}
	}
}

// Calls return one after the other only for a window. After that, what has waited goes on at once.
func TestBucketOutage_ReturnIsOver(t *testing.T) {
	t.Parallel()
	b, now := outageOf(t, AllFail)
	b.Observe(now, EventAnswered)
	for _, row := range []struct {
		after  time.Duration
		second Answer
	}{{0, Later}, {Window - 1, Later}, {Window, Yes}} {
		at := now.Add(row.after)
		first, second := answerOf(b, at, CauseReconnected), answerOf(b, at, CauseReconnected)
		if first != Yes || second != row.second {
			t.Errorf("after %v: %v, %v; want yes, %v", row.after, first, second, row.second)
		}
	}
}

// An answer that takes longer than the average one lets none return. Where a queue grows, each takes longer than the ones before.
func TestBucketOutage_ReturnToAQueue(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	b, now := outageOf(t, AllFail)
	b.Observe(now, EventAnswered)
	w := waiting{b: b, cause: CauseReconnected}
	w.ask(now)
	now = now.Add(10 * ms)
	w.end(now, EndHelped)
	if got := w.ask(now); got != 3 {
		t.Errorf("%d return after the first answer; want 3", got)
	}
	for i, took := range []time.Duration{10 * ms, 20 * ms, 30 * ms} {
		w.ended[i](now.Add(took), EndHelped)
	}
	w.ended, now = nil, now.Add(30*ms)
	if got := w.ask(now); got != 3 {
		t.Errorf("%d return after answers in 10, 20 and 30 ms; want 3, for the first", got)
	}
	w.end(now.Add(40*ms), EndHelped)
	if got := w.ask(now.Add(40 * ms)); got != 1 {
		t.Errorf("%d return after answers in 40 ms; want the one that may always be on its way", got)
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
