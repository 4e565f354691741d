// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/testkit"
)

// t0 is a time that differs from the zero of the clock.
var t0 = clock.Time(1000 * time.Hour)

// kept is a budget of this package, as a Retrier keeps it.
type kept interface {
	Budget
	Stater
	Reload(now time.Time, c Config) error
}

func made(tb testing.TB, c Config) kept {
	tb.Helper()
	return testkit.Must(New(c))(tb).(kept)
}

func configs() map[string]Config {
	return map[string]Config{"bucket": Default(), "throttle": ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}}
}

// The error has the field, its value and the allowed values.
func TestNew_Errors(t *testing.T) {
	t.Parallel()
	bucket := func(change func(*BucketConfig)) Config {
		c := Default()
		change(&c)
		return c
	}
	throttle := func(most int, ratio float64) Config { return ThrottleConfig{MaxTokens: most, TokenRatio: ratio} }
	const tooSmall = ": must be at least 0.001, and finite"
	for _, c := range []struct {
		config Config
		want   string
	}{
		{bucket(func(c *BucketConfig) { c.Size = -0.1 }), "budget: Size -0.1: must be 0 to 1000000"},
		{bucket(func(c *BucketConfig) { c.Size = math.Inf(1) }), "budget: Size +Inf: must be 0 to 1000000"},
		{bucket(func(c *BucketConfig) { c.Size = 3.00005 }), "budget: Size 3.00005: must have at most 4 decimals, such as 3.0001"},
		{bucket(func(c *BucketConfig) { c.PerSuccess = -0.1 }), "budget: PerSuccess -0.1: must be 0 to 10"},
		{bucket(func(c *BucketConfig) { c.PerSuccess = math.NaN() }), "budget: PerSuccess NaN: must be 0 to 10"},
		{bucket(func(c *BucketConfig) { c.SlowCost = 0.9999 }), "budget: SlowCost 0.9999: must be 1 to 1000"},
		{bucket(func(c *BucketConfig) { c.Refund = 11 }), "budget: Refund 11: must be 0 to 10"},
		{BucketConfig{Refund: -1}, "budget: SlowCost 0: must be 1 to 1000\nbudget: Refund -1: must be 0 to 10"},
		{throttle(0, 0.1), "budget: MaxTokens 0: must be a whole number from 1 to 1000"},
		{throttle(1001, 0.1), "budget: MaxTokens 1001: must be a whole number from 1 to 1000"},
		{throttle(10, 0), "budget: TokenRatio 0" + tooSmall},
		{throttle(10, 0.0009), "budget: TokenRatio 0.0009" + tooSmall},
		{throttle(10, math.NaN()), "budget: TokenRatio NaN" + tooSmall},
		{throttle(10, math.Inf(1)), "budget: TokenRatio +Inf" + tooSmall},
	} {
		b, err := New(c.config)
		if err == nil || b != nil {
			t.Errorf("New(%+v) = %v, %v; want nil and an error", c.config, b, err)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("error\n%v; want\n%v", err, c.want)
		}
		wrong, ok := errors.AsType[*bounds.Error](err)
		if !ok || !reflect.ValueOf(c.config).FieldByName(wrong.Field).IsValid() {
			t.Errorf("%+v names no field of the config", wrong)
		}
	}
	if b, err := New(nil); err == nil {
		t.Errorf("New(nil) = %v", b)
	}
}

// A reload scales a balance, and never refills it.
func TestReload(t *testing.T) {
	t.Parallel()
	big := plain
	big.Size = 6
	for name, row := range map[string]struct {
		from, to    Config
		spend       int
		before, now State
	}{
		"a full bucket":          {plain, big, 0, State{4, 4}, State{6, 6}},
		"a half-full bucket":     {plain, big, 2, State{2, 4}, State{3, 6}},
		"an empty bucket":        {plain, big, 4, State{0, 4}, State{0, 6}},
		"a throttle":             {ThrottleConfig{100, 1}, ThrottleConfig{10, 0.5}, 30, State{20, 50}, State{2, 5}},
		"the same config":        {plain, plain, 3, State{1, 4}, State{1, 4}},
		"a smaller, full bucket": {big, plain, 0, State{6, 6}, State{4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := made(t, row.from)
			for range row.spend {
				b.Observe(t0, EventAttemptFailed)
				b.Allow(t0, CauseFailure)
			}
			if got := b.State(t0); got != row.before {
				t.Fatalf("%+v before; want %+v", got, row.before)
			}
			testkit.NoError(t, b.Reload(t0, row.to))
			if got := b.State(t0); got != row.now {
				t.Errorf("%+v after; want %+v", got, row.now)
			}
		})
	}
}

// What does not fit is refused, and changes nothing.
func TestReload_Errors(t *testing.T) {
	t.Parallel()
	for name, c := range configs() {
		b := made(t, c)
		before := b.State(t0)
		for other, c := range configs() {
			if other != name && b.Reload(t0, c) == nil {
				t.Errorf("a %s becomes a %s", name, other)
			}
		}
		for _, c := range []Config{BucketConfig{}, ThrottleConfig{}, nil} {
			if b.Reload(t0, c) == nil {
				t.Errorf("a %s takes %+v", name, c)
			}
		}
		if got := b.State(t0); got != before {
			t.Errorf("%s: %+v; want %+v", name, got, before)
		}
	}
}

// A refund from before a reload is one of the old config's cost: it can't fill more than the bucket holds.
func TestReload_OfOpenPermits(t *testing.T) {
	t.Parallel()
	b := made(t, plain)
	_, ended := b.Allow(t0, CauseSlow)
	small := plain
	small.Size = 1
	testkit.NoError(t, b.Reload(t0, small))
	if ended(t0, EndHelped); b.State(t0).Balance != 1 {
		t.Errorf("balance %v; want 1", b.State(t0).Balance)
	}
}

// Any time is taken, and a balance is a number from 0 to the capacity.
func TestBudgets_AnyTime(t *testing.T) {
	t.Parallel()
	for name, c := range configs() {
		b := made(t, c)
		for _, now := range []time.Time{t0, {}, time.Unix(1<<40, 0), clock.Time(math.MaxInt64), clock.Time(math.MinInt64), time.Now()} {
			b.Observe(now, EventCallSucceeded)
			if answer, ended := b.Allow(now, CauseSlow); answer == Yes && ended != nil {
				ended(now, EndHelped)
			}
			b.Observe(now, EventAttemptFailed)
			if s := b.State(now); !(s.Balance >= 0 && s.Balance <= s.Capacity) {
				t.Errorf("%s at %v: %+v", name, now, s)
			}
		}
	}
}

func TestUnlimited(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if answer, _ := Unlimited.Allow(t0, CauseSlow); answer != Yes {
			t.Fatal("refused")
		}
	}
	if s := Unlimited.(Stater).State(t0); !math.IsInf(s.Balance, 1) || !math.IsInf(s.Capacity, 1) {
		t.Errorf("%+v", s)
	}
}

// Not parallel: other tests would leave the goroutines one processor, and they would never meet.
func TestBucket_Concurrent(t *testing.T) {
	c := plain
	c.Size, c.PerSuccess = 1000, 0
	b := made(t, c)
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 100 {
				b.Observe(t0, EventCallSucceeded)
				if answer, ended := b.Allow(t0, CauseFailure); answer == Yes {
					allowed.Add(1)
					ended(t0, EndFailed)
				}
			}
		})
	}
	wg.Wait()
	if got := allowed.Load(); got != 1000 {
		t.Errorf("%d extra attempts; want the 1000 that the bucket held", got)
	}
}

// A success allocates nothing. Not parallel: allocations are counted for the whole process.
func TestBudgets_SuccessAllocatesNothing(t *testing.T) {
	for name, c := range configs() {
		b, now := made(t, c), t0
		if n := testing.AllocsPerRun(1000, func() { now = now.Add(time.Second); b.Observe(now, EventCallSucceeded) }); n != 0 {
			t.Errorf("%s: %v allocations; want 0", name, n)
		}
	}
}
