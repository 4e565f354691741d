// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/testkit"
)

// ledger plays a bucket: each line is an action at a time, and the balance after it.
type ledger struct {
	budget Budget
	ended  []func(time.Time, End) // of the extra attempts that were allowed, in order
}

type action func(l *ledger, now time.Time) bool

func succeed(n int) action {
	return func(l *ledger, now time.Time) bool {
		for range n {
			l.budget.Observe(now, EventCallSucceeded)
		}
		return true
	}
}

func ask(c Cause) action {
	return func(l *ledger, now time.Time) bool {
		answer, ended := l.budget.Allow(now, c)
		if answer == Yes {
			l.ended = append(l.ended, ended)
		}
		return answer == Yes
	}
}

func ends(i int, how End) action {
	return func(l *ledger, now time.Time) bool { l.ended[i](now, how); return true }
}

func wait(*ledger, time.Time) bool { return true }

// plain has numbers that are easy to follow.
var plain = BucketConfig{Size: 4, PerSuccess: 0.5, SlowCost: 3, Refund: 2}

// TestBucket reads like the rule: docs/overload.md has it in words.
func TestBucket(t *testing.T) {
	t.Parallel()
	type line struct {
		at      float64 // seconds
		do      action
		ok      bool
		balance float64
	}
	retry, slow := ask(CauseFailure), ask(CauseSlow)
	for name, lines := range map[string][]line{
		"full at first, a retry costs 1": {{0, wait, true, 4}, {0, retry, true, 3}, {0, retry, true, 2}, {0, retry, true, 1}, {0, retry, true, 0}, {0, retry, false, 0}},
		"beside a slow attempt costs 3":  {{0, slow, true, 1}, {0, slow, false, 1}, {0, retry, true, 0}},
		"an unknown cause costs as much": {{0, ask(99), true, 1}},
		"a success adds its part":        {{0, retry, true, 3}, {0, succeed(1), true, 3.5}, {0, succeed(1), true, 4}, {0, succeed(1), true, 4}},
		"a failed call adds nothing": {{0, retry, true, 3}, {0, func(l *ledger, now time.Time) bool {
			l.budget.Observe(now, EventCallFailed)
			l.budget.Observe(now, EventAttemptFailed)
			l.budget.Observe(now, 77)
			return true
		}, true, 3}},
		"one that helps returns twice its cost":  {{0, slow, true, 1}, {0, retry, true, 0}, {0, ends(1, EndHelped), true, 2}, {0, ends(0, EndHelped), true, 4}},
		"one that fails returns nothing":         {{0, slow, true, 1}, {0, ends(0, EndFailed), true, 1}},
		"one that is not sent returns its cost":  {{0, slow, true, 1}, {0, ends(0, EndUnsent), true, 4}},
		"time fills it slowly":                   {{0, slow, true, 1}, {75, wait, true, 2}, {112.5, wait, true, 2.5}, {600, wait, true, 4}},
		"a busy client's holds more":             {{0, succeed(20), true, 10}, {0, slow, true, 7}, {0, succeed(10), true, 12}, {0, succeed(100), true, 62}},
		"as long as its successes are recent":    {{0, slow, true, 1}, {0, succeed(100), true, 50}, {4, wait, true, 50}, {5, wait, true, 4}},
		"refunds fill no more than it holds":     {{0, retry, true, 3}, {0, ends(0, EndHelped), true, 4}},
		"a clock that goes back changes nothing": {{9, slow, true, 1}, {0, wait, true, 1}, {0, retry, true, 0}, {9, wait, true, 0}, {84, wait, true, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{budget: testkit.Must(New(plain))(t)}
			for i, line := range lines {
				now := t0.Add(time.Duration(line.at * float64(time.Second)))
				if ok := line.do(l, now); ok != line.ok {
					t.Fatalf("line %d: allowed: %v", i, ok)
				}
				if got := l.budget.(Stater).State(now).Balance; math.Abs(got-line.balance) > 1e-9 {
					t.Fatalf("line %d: balance %v; want %v", i, got, line.balance)
				}
			}
		})
	}
}

// A bucket without a size is empty at first, time adds nothing, and what successes have added ends with their window.
func TestBucket_OfSizeZero(t *testing.T) {
	t.Parallel()
	c := plain
	c.Size = 0
	b := made(t, c)
	retry := func(after time.Duration) bool {
		answer, _ := b.Allow(t0.Add(after), CauseFailure)
		return answer == Yes
	}
	if retry(0) || retry(RefillTime) {
		t.Error("allowed before any success")
	}
	now := 2 * RefillTime
	for range 8 { // which add 4
		b.Observe(t0.Add(now), EventCallSucceeded)
	}
	if first, second := retry(now), retry(now); !first || !second || retry(now+Window) {
		t.Error("must hold what the successes of the last window add, and nothing else")
	}
	testkit.NoError(t, b.Reload(t0.Add(now+Window), plain))
	if got := b.State(t0.Add(now + Window)); got != (State{0, plain.Size}) {
		t.Errorf("%+v after it got a size; want it empty still", got)
	}
}

// Refunds fill a bucket beyond what it holds otherwise, successes and time don't.
func TestBucket_RefundSize(t *testing.T) {
	t.Parallel()
	c := plain
	c.RefundSize = 6
	b := made(t, c)
	_, first := b.Allow(t0, CauseSlow)
	_, second := b.Allow(t0, CauseFailure)
	for i, want := range []float64{6, 6} {
		[]func(time.Time, End){first, second}[i](t0, EndHelped)
		if got := b.State(t0); got != (State{want, want}) {
			t.Errorf("refund %d: %+v; want a balance and a capacity of %v", i, got, want)
		}
	}
	b.Observe(t0, EventCallSucceeded)
	if got := b.State(t0.Add(time.Hour)); got != (State{6, 6}) {
		t.Errorf("%+v; want 6 still", got)
	}
	b.Allow(t0, CauseSlow)
	if got := b.State(t0.Add(2 * time.Hour)); got != (State{4, 4}) {
		t.Errorf("%+v; want 4, as far as time fills it", got)
	}
}

// Whatever happens, extra attempts never spend more than the bucket held, what successes and time have added, and what was returned.
func TestBucket_NeverSpendsMoreThanWasEarned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := BucketConfig{
			Size: float64(rapid.IntRange(0, 20).Draw(t, "size")), PerSuccess: rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "per success"),
			SlowCost: rapid.SampledFrom([]float64{1, 3}).Draw(t, "slow cost"), Refund: rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "refund"),
			RefundSize: float64(rapid.IntRange(0, 30).Draw(t, "refund size")),
		}
		b := testkit.Must(New(c))(t)
		now, may := t0, c.Size
		var running []func(time.Time, End)
		var costs []float64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				passed := time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond
				now = now.Add(passed)
				may += c.Size * passed.Seconds() / RefillTime.Seconds()
			case 1:
				b.Observe(now, EventCallSucceeded)
				may += c.PerSuccess
			case 2, 3:
				cause, cost := CauseFailure, 1.0
				if rapid.Bool().Draw(t, "slow") {
					cause, cost = CauseSlow, c.SlowCost
				}
				if answer, ended := b.Allow(now, cause); answer == Yes {
					running, costs = append(running, ended), append(costs, cost)
					may -= cost
				}
			case 4:
				if n := len(running); n > 0 {
					how := rapid.SampledFrom([]End{EndUnsent, EndFailed, EndHelped}).Draw(t, "end")
					running[n-1](now, how)
					may += costs[n-1] * map[End]float64{EndUnsent: 1, EndHelped: c.Refund}[how]
					running, costs = running[:n-1], costs[:n-1]
				}
			}
			if may < -1e-3 {
				t.Fatalf("spent %v more than was earned", -may)
			}
			s := b.(Stater).State(now)
			if s.Balance < 0 || s.Balance > s.Capacity+1e-9 || s.Balance > may+1e-3 {
				t.Fatalf("%+v, where at most %v was earned", s, may)
			}
		}
	})
}

func TestRecent_TakesAnyTime(t *testing.T) {
	t.Parallel()
	for _, times := range [][]time.Duration{
		{math.MinInt64, math.MaxInt64},
		{math.MaxInt64, math.MinInt64},
		{math.MinInt64, 0, math.MaxInt64},
		{-1, 0, 1},
		{math.MaxInt64 - 1, math.MaxInt64},
	} {
		r := recent{}
		for _, now := range times {
			if r.advance(now, 0); r.end() <= r.start && r.start < math.MaxInt64 {
				t.Errorf("%v: at %v the newest slot is from %d to %d", times, now, r.start, r.end())
			}
		}
	}
}

func TestRecent_Slides(t *testing.T) {
	t.Parallel()
	r := recent{}
	for i := range 30 {
		r.advance(time.Duration(i)*slot, int64(i)) // the successes of the slot before
		if got := r.sum(); got != int64(min(i, slots-1)) {
			t.Errorf("slot %d: %d successes; want %d", i, got, min(i, slots-1))
		}
	}
	if r.advance(time.Hour, 30); r.sum() != 0 {
		t.Errorf("%d successes after an hour; want none", r.sum())
	}
}

// drain empties a bucket.
func drain(tb testing.TB, b Budget, now time.Time) {
	tb.Helper()
	bucket, _ := b.(*bucketBudget)
	bucket.State(now)
	bucket.tokens = 0
}

// Time fills a bucket however often it is asked: what is less than a millionth of a retry is not lost.
func TestBucket_TimeFillsItHoweverOftenItIsAsked(t *testing.T) {
	t.Parallel()
	c := plain
	c.Size = 0.0001 // a millionth in 3 s
	b := made(t, c)
	drain(t, b, t0)
	for i := range 200 {
		b.Allow(t0.Add(time.Duration(i+1)*1500*time.Millisecond), CauseFailure)
	}
	if got := b.State(t0.Add(RefillTime)).Balance; got != c.Size {
		t.Errorf("balance %v after %v; want %v", got, RefillTime, c.Size)
	}
}

// Times that are too far apart for a Duration don't fill a bucket.
func TestBucket_ClockJumps(t *testing.T) {
	t.Parallel()
	for _, times := range [][]time.Time{{t0, {}}, {clock.Time(math.MaxInt64), clock.Time(math.MinInt64)}} {
		b := made(t, plain)
		b.Observe(times[0], EventCallSucceeded)
		drain(t, b, times[0])
		if got := b.State(times[1]).Balance; got != 0 {
			t.Errorf("from %v to %v: balance %v; want 0", times[0], times[1], got)
		}
	}
}

// A reload scales what successes and time have filled. What refunds have added stays, so that no config makes much of a little.
func TestBucket_ReloadOfRefunds(t *testing.T) {
	t.Parallel()
	with := func(size, refundSize float64) BucketConfig {
		c := plain
		c.Size, c.RefundSize, c.Refund = size, refundSize, 10
		return c
	}
	for name, row := range map[string]struct {
		from, to BucketConfig
		want     float64
	}{
		"more of a larger bucket":   {with(4, 12), with(6, 20), 14},
		"less of a smaller bucket":  {with(4, 12), with(2, 12), 10},
		"up to what refunds fill":   {with(4, 12), with(6, 12), 12},
		"of size 0":                 {with(0, 12), with(4, 20), 12},
		"of size 0, to the largest": {with(0, 12), with(1e6, 1e6), 12},
		"of the smallest size":      {with(0.0001, 12), with(999_000, 1e6), 999_000 + 12 - 0.0001},
	} {
		b := made(t, row.from)
		for range 8 { // which let a bucket of size 0 pay for an attempt
			b.Observe(t0, EventCallSucceeded)
		}
		_, ended := b.Allow(t0, CauseSlow)
		now := t0.Add(Window)
		b.State(now)
		ended(now, EndHelped)
		if got := b.State(now).Balance; got != row.from.RefundSize {
			t.Fatalf("%s: balance %v before; want %v", name, got, row.from.RefundSize)
		}
		testkit.NoError(t, b.Reload(now, row.to))
		if got := b.State(now).Balance; math.Abs(got-row.want) > 1e-3 {
			t.Errorf("%s: balance %v; want %v", name, got, row.want)
		}
	}
}
