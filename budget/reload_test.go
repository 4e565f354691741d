// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// TestFresh uses a budget of each kind, and then waits until it has forgotten that.
func TestFresh(t *testing.T) {
	t.Parallel()
	call := func(b kind, at time.Duration, e Event) {
		b.Start(at)
		b.Finish(at, e)
	}
	for name, row := range map[string]struct {
		config Config
		use    func(kind)
		forget func(kind)
		when   time.Duration // when it has forgotten
	}{
		"ratio, a call": {
			DefaultRatio(), func(b kind) { call(b, t0, EventCallSucceeded) }, func(kind) {}, t0 + DefaultRatio().Window,
		},
		"ratio, a charge": {
			DefaultRatio(), func(b kind) { spend(b, t0, 1) }, func(kind) {}, t0 + DefaultRatio().Window,
		},
		"throttle, a failure": {
			ThrottleConfig{MaxTokens: 10, TokenRatio: 0.5},
			func(b kind) { b.Fail(t0); call(b, t0, EventCallSucceeded) },
			func(b kind) { call(b, t0, EventCallSucceeded) }, t0,
		},
		"concurrent, a call": {
			envoys, func(b kind) { b.Start(t0) }, func(b kind) { b.Finish(t0, EventCallFailed) }, t0,
		},
		"concurrent, an extra attempt": {
			envoys, func(b kind) { spend(b, t0, 1) },
			func(b kind) { b.Settle(t0, Permit{}, false) }, t0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := must.Get(newKind(row.config))(t)
			if !b.Fresh(t0) {
				t.Error("it is not fresh when it is made")
			}
			row.use(b)
			if b.Fresh(row.when - 1) {
				t.Error("it is fresh after use")
			}
			row.forget(b)
			if !b.Fresh(row.when) {
				t.Error("it is not fresh when it has forgotten")
			}
			b.Drain(row.when)
			if _, concurrent := row.config.(ConcurrentConfig); b.Fresh(row.when) != concurrent {
				t.Error("it is fresh when it was drained")
			}
		})
	}
}

func TestReloadScalesAndNeverRefills(t *testing.T) {
	t.Parallel()
	wide := RatioConfig{Percent: 40, MinPerSecond: 4, Window: 10 * time.Second, TimeoutCost: 5}
	for _, row := range []struct {
		name          string
		spent         int
		before, after float64
	}{{"full", 0, 20, 80}, {"three quarters", 5, 15, 60}, {"exhausted", 20, 0, 0}} {
		b := ratio(t, 10, 1) // 10 in reserve, and 10 of 100 calls
		for range 100 {
			b.Start(t0)
		}
		spend(b, t0, row.spent)
		if got := b.Balance(t0); got != row.before {
			t.Fatalf("%s: balance %v; want %v", row.name, got, row.before)
		}
		mustReload(t, b, at(1), wide)
		if got := b.Balance(at(1)); got != row.after {
			t.Errorf("%s: balance %v after the reload; want %v", row.name, got, row.after)
		}
		wide.Window = 20 * time.Second
		mustReload(t, b, at(2), wide)
		part := row.before / 20
		if got, want := b.Balance(at(2)), part*(40+80); math.Abs(got-want) > 0.001 { // the calls, and twice the reserve
			t.Errorf("%s: balance %v with a longer window; want %v", row.name, got, want)
		}
		wide.Window = 10 * time.Second
	}
	thrown := throttle(t, 100, 1)
	for range 30 {
		thrown.Fail(t0)
	}
	mustReload(t, thrown, t0, ThrottleConfig{MaxTokens: 10, TokenRatio: 0.5})
	if got := tokens(&thrown.bucket); got != 7 {
		t.Errorf("throttle: %v tokens; want 7 of 10", got)
	}
}

// other has another config of each kind.
var other = map[string]Config{
	"ratio":      RatioConfig{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 6, TimeoutBonus: 2.5},
	"throttle":   ThrottleConfig{MaxTokens: 10, TokenRatio: 0.2},
	"concurrent": ConcurrentConfig{Percent: 21, Min: 3},
}

// A permit from before a reload returns nothing, but an attempt in flight ends with it.
func TestReloadOfOpenPermits(t *testing.T) {
	t.Parallel()
	for name, b := range reloadables(t) {
		permits := []Permit{}
		for range 3 {
			p, ok := b.Withdraw(t0, charge([]Cause{timeout, failure, failure}[len(permits)]))
			if !ok {
				t.Fatal(name, "refused")
			}
			permits = append(permits, p)
		}
		mustReload(t, b, t0, other[name])
		want := b.Balance(t0)
		for i, p := range permits {
			if name == "concurrent" {
				want++
			}
			if i == 2 {
				b.Return(t0, p)
			} else {
				b.Settle(t0, p, true)
			}
			if got := b.Balance(t0); got != want {
				t.Errorf("%s: balance %v; want %v", name, got, want)
			}
		}
	}
}

func TestReloadOfLimitsLeavesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	b := concurrent(t, 100, 4)
	permits := spend(b, t0, 4)
	mustReload(t, b, t0, ConcurrentConfig{Percent: 100, Min: 2})
	b.Return(t0, permits[0])
	if b.Return(t0, permits[1]); granted(b, t0) {
		t.Error("granted with two of two in flight")
	}
	if b.Return(t0, permits[2]); !granted(b, t0) {
		t.Error("refused with one of two in flight")
	}
}

func TestReloadRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, b := range reloadables(t) {
		before := b.Balance(t0)
		for _, c := range append(configs(), RatioConfig{}, ThrottleConfig{}, ConcurrentConfig{}, nil) {
			if c != nil && c.check() == nil && c.budget().(reloadable).Kind() == name {
				continue
			}
			if b.Reload(t0, c) == nil {
				t.Errorf("%s: %T %+v is taken", name, c, c)
			}
		}
		if got := b.Balance(t0); got != before {
			t.Errorf("%s: balance %v; want %v", name, got, before)
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	for name, b := range reloadables(t) {
		b.Start(t0)
		spend(b, t0, 1)
		b.Drain(t0)
		b.Drain(t0)
		if name == "concurrent" {
			if got := b.Balance(t0); got != 2 {
				t.Errorf("concurrent: balance %v; want 2 more beside the one in flight", got)
			}
			continue
		}
		if got := b.Balance(t0); got != 0 || granted(b, t0) {
			t.Errorf("%s: balance %v after it was drained", name, got)
		}
		for range 100 {
			b.Start(t0)
			b.Finish(t0, EventCallSucceeded)
		}
		if !granted(b, t0) {
			t.Errorf("%s: earns nothing after it was drained", name)
		}
	}
}
