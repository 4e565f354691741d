// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// After finagle's test: of 10,000 calls that fail, as many are tried again as the share says. Shares
// that other libraries round (60 % to 100 %, 30 % to 33 %) are kept.
func TestRatioIsKeptOverTenThousandCalls(t *testing.T) {
	t.Parallel()
	const calls = 10_000
	for _, c := range []struct {
		percent float64
		want    int
	}{
		{0.0001, 0},
		{0.0101, 1},
		{0.07, 7},
		{1, 100},
		{3.1416, 314},
		{10, 1000},
		{29.9999, 2999},
		{30, 3000},
		{33.3333, 3333},
		{50, 5000},
		{60, 6000},
		{66.6667, 6666},
		{99.9999, 9999},
		{100, 10_000},
		{150, 15_000},
		{1000, 100_000},
	} {
		t.Run(fmt.Sprintf("%v%%", c.percent), func(t *testing.T) {
			t.Parallel()
			b := ratio(t, c.percent, 0)
			extra := 0
			for i := range calls {
				now := (t0 + time.Duration(i)*999*time.Microsecond) // all in one window
				b.Start(now)
				for granted(b, now) {
					extra++
				}
			}
			if extra != c.want {
				t.Errorf("%d extra attempts; want %d", extra, c.want)
			}
		})
	}
}

func granted(b budget.Budget, now time.Duration) bool {
	_, ok := b.Withdraw(now, charge(failure))
	return ok
}

// An outage that lasts ten windows: no retry is lost or won when slots expire, but for the part of
// a token that waits for the next call.
func TestRatioIsKeptWhileTheWindowSlides(t *testing.T) {
	t.Parallel()
	const calls = 10_000
	for _, percent := range []float64{1, 10, 30, 33.3333, 60, 100, 250} {
		t.Run(fmt.Sprintf("%v%%", percent), func(t *testing.T) {
			t.Parallel()
			b := ratio(t, percent, 0)
			extra := 0
			for i := range calls {
				now := (t0 + time.Duration(i)*10*time.Millisecond)
				b.Start(now)
				for granted(b, now) {
					extra++
				}
			}
			want := percent / 100 * calls
			if got := float64(extra); got < want-10 || got > want+1 {
				t.Errorf("%v extra attempts; want %v", got, want)
			}
		})
	}
}

// The reserve is a rate: one a second of ten seconds, whatever the demand.
func TestRatioReserveIsARate(t *testing.T) {
	t.Parallel()
	b := ratio(t, 0.0001, 1)
	extra := 0
	for i := range 10_000 { // 100 s
		if granted(b, (t0 + time.Duration(i)*10*time.Millisecond)) {
			extra++
		}
	}
	if extra != 100 {
		t.Errorf("%d extra attempts in 100s; want 100", extra)
	}
}

// Attempts after timeouts that succeed pay 7.5 for a cost of 5: they go on for ever if two thirds
// succeed, and dry up if one in ten thousand fewer does.
func TestTimeoutsSustainThemselvesFromTwoThirds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		succeed, of int
		sustained   bool
	}{
		{1, 2, false}, {6665, 10_000, false}, {6666, 10_000, false}, {2, 3, true}, {6667, 10_000, true}, {3, 4, true}, {1, 1, true},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.succeed, c.of), func(t *testing.T) {
			t.Parallel()
			b := ratio(t, 0.0001, 1) // ten tokens to begin with, and no time that brings more
			for i := range 40_000 {
				p, ok := b.Withdraw(t0, charge(timeout))
				if !ok {
					if c.sustained {
						t.Fatalf("attempt %d refused", i)
					}
					return
				}
				if (i+1)*c.succeed/c.of > i*c.succeed/c.of { // spread evenly
					b.Settle(t0, p, true)
				}
			}
			if !c.sustained {
				t.Fatal("never refused")
			}
		})
	}
}

// The same with time: an attempt each 100 ms times out, and its extra attempt answers after 300 ms.
func TestTimeoutsDryUpInAnOverload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		succeed, of int
		least, most int // of 1000 extra attempts
	}{
		{3, 4, 985, 1000}, // the first wait until answers have paid for them
		{1, 2, 40, 120},   // the reserve of 1 a second pays 2.5 each: 40, and what bonuses bring
		{0, 1, 20, 20},    // the reserve of 1 a second pays 5 each
	} {
		t.Run(fmt.Sprintf("%d of %d", c.succeed, c.of), func(t *testing.T) {
			t.Parallel()
			b := ratio(t, 0.0001, 1)
			var waiting []budget.Permit
			extra := 0
			for i := range 1000 {
				now := (t0 + time.Duration(i)*100*time.Millisecond)
				for len(waiting) > 0 && now-waiting[0].At >= 300*time.Millisecond {
					b.Settle(now, waiting[0], true)
					waiting = waiting[1:]
				}
				p, ok := b.Withdraw(now, charge(timeout))
				if !ok {
					continue
				}
				extra++
				if extra*c.succeed/c.of > (extra-1)*c.succeed/c.of {
					waiting = append(waiting, p)
				}
			}
			if extra < c.least || extra > c.most {
				t.Errorf("%d extra attempts; want %d to %d", extra, c.least, c.most)
			}
		})
	}
}
