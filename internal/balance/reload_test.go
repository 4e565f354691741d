// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// model is the simplest implementation of a budget: it isn't concurrent, and forgets nothing. Amounts are in the unit of
// Permit.Cost.
type model interface {
	start(now time.Duration)
	fail()
	withdraw(now time.Duration, c Charge) (cost int64, ok bool)
	giveBack(n int)                               // the nth granted withdrawal
	settle(now time.Duration, n int, helped bool) // the same
	finish(e End)
	reload(now time.Duration, c Config)
	balance(now time.Duration) float64
}

// kind is a kind of budgets with its model.
type kind struct {
	config func(*rapid.T) Config // draws one
	model  func(Config) model
}

// Calls start and end, attempts are charged and settled, clocks lag, and meanwhile configs are reloaded, unchanged and changed
// ones.
func TestReloadable(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]kind{
		"ratio":      {drawRatio, newRatioModel},
		"throttle":   {drawThrottle, newThrottleModel},
		"concurrent": {drawConcurrent, newConcurrentModel},
		"refund":     {drawRefund, newRefundModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { kind.check(t) })
		})
	}
}

func (k kind) check(t *rapid.T) {
	config := k.config(t)
	b := must.Get(New(config, nil))(t)
	m := k.model(config)
	var (
		latest  = t0
		calls   int
		denied  uint64
		permits []Permit // granted ones
		open    []int    // unsettled ones
	)
	now := func(t *rapid.T) time.Duration {
		return max(t0, latest-time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 900, 2000}).Draw(t, "lag in ms"))*time.Millisecond)
	}
	take := func(t *rapid.T) int {
		if len(open) == 0 {
			t.Skip("no permit is out")
		}
		i := rapid.IntRange(0, len(open)-1).Draw(t, "permit")
		n := open[i]
		open = slices.Delete(open, i, i+1)
		return n
	}
	t.Repeat(map[string]func(*rapid.T){
		"wait": func(t *rapid.T) {
			latest += time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond
		},
		"start": func(t *rapid.T) {
			at := now(t)
			for range rapid.IntRange(1, 50).Draw(t, "calls") {
				b.Start(at)
				m.start(at)
				calls++
			}
		},
		"finish": func(t *rapid.T) {
			if calls == 0 {
				t.Skip("no call runs")
			}
			calls--
			e := End(rapid.IntRange(1, 3).Draw(t, "end"))
			b.Finish(now(t), e)
			m.finish(e)
		},
		"fail": func(t *rapid.T) {
			b.Fail(now(t))
			m.fail()
		},
		"withdraw": func(t *rapid.T) {
			at, c := now(t), Charge{
				Kind:   Kind(rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4, 255}).Draw(t, "kind")),
				Factor: float64(rapid.IntRange(1, 12).Draw(t, "quarters")) / 4,
			}
			cost, want := m.withdraw(at, c)
			p, ok := b.Withdraw(at, c)
			if ok != want || ok && p.Cost != cost {
				t.Fatalf("granted %v at %d; want %v at %d", ok, p.Cost, want, cost)
			}
			if !ok {
				denied++
				return
			}
			open, permits = append(open, len(permits)), append(permits, p)
		},
		"return": func(t *rapid.T) {
			n := take(t)
			b.Return(now(t), permits[n])
			m.giveBack(n)
		},
		"settle": func(t *rapid.T) {
			n, at, helped := take(t), now(t), rapid.Bool().Draw(t, "helped")
			b.Settle(at, permits[n], helped)
			m.settle(at, n, helped)
		},
		"reload": func(t *rapid.T) {
			config = k.config(t)
			at := now(t)
			must.Do(t, b.Reload(at, config))
			m.reload(at, config)
		},
		"reload the same": func(t *rapid.T) {
			before := b.Balance(latest)
			must.Do(t, b.Reload(latest, config))
			if got := b.Balance(latest); got != before {
				t.Fatalf("balance %v; want %v", got, before)
			}
		},
		"": func(t *rapid.T) {
			if got, want := b.Balance(latest), m.balance(latest); got != want {
				t.Fatalf("balance %v; want %v", got, want)
			}
			if got := b.Denied(); got != denied {
				t.Fatalf("denied %d; want %d", got, denied)
			}
			if anew, _ := New(config, nil); b.Fresh(latest) && (b.Balance(latest) != anew.Balance(latest) || b.Capacity(latest) != anew.Capacity(latest)) {
				t.Fatalf("fresh, with balance %v of %v; one made anew has %v of %v",
					b.Balance(latest), b.Capacity(latest), anew.Balance(latest), anew.Capacity(latest))
			}
		},
	})
}

// TestFresh uses a budget of each kind, and then waits until it has forgotten that.
func TestFresh(t *testing.T) {
	t.Parallel()
	call := func(b Budget, at time.Duration, e End) {
		b.Start(at)
		b.Finish(at, e)
	}
	for name, row := range map[string]struct {
		config Config
		use    func(Budget)
		forget func(Budget)
		when   time.Duration // when it has forgotten
	}{
		"ratio, a call": {
			DefaultRatio(), func(b Budget) { call(b, t0, EndAtOnce) }, func(Budget) {}, t0 + DefaultRatio().Window,
		},
		"ratio, a charge": {
			DefaultRatio(), func(b Budget) { spend(b, t0, 1) }, func(Budget) {}, t0 + DefaultRatio().Window,
		},
		"throttle, a failure": {
			ThrottleConfig{MaxTokens: 10, TokenRatio: 0.5},
			func(b Budget) { b.Fail(t0); call(b, t0, EndAtOnce) },
			func(b Budget) { call(b, t0, EndAtOnce) }, t0,
		},
		"refund, a charge": {
			DefaultRefund(), func(b Budget) { spend(b, t0, 1) },
			func(b Budget) {
				for range 5 {
					call(b, t0, EndAtOnce)
				}
			}, t0,
		},
		"concurrent, a call": {
			DefaultConcurrent(), func(b Budget) { b.Start(t0) }, func(b Budget) { b.Finish(t0, EndFailed) }, t0,
		},
		"concurrent, an extra attempt": {
			DefaultConcurrent(), func(b Budget) { spend(b, t0, 1) },
			func(b Budget) { b.Settle(t0, Permit{}, false) }, t0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := must.Get(New(row.config, nil))(t)
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
	b := refund(t, RefundConfig{Capacity: 100, RetryCost: 5, TimeoutCost: 10, Success: 1})
	spend(b, t0, 10)
	mustReload(t, b, t0, RefundConfig{Capacity: 10, RetryCost: 1, TimeoutCost: 1, Success: 1})
	if got := tokens(&b.bucket); got != 5 {
		t.Errorf("refund: %v tokens; want 5 of 10", got)
	}
}

// other has another config of each kind.
var other = map[string]Config{
	"ratio":      RatioConfig{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 6, TimeoutBonus: 2.5},
	"throttle":   ThrottleConfig{MaxTokens: 10, TokenRatio: 0.2},
	"concurrent": ConcurrentConfig{Percent: 21, Min: 3},
	"refund":     RefundConfig{Capacity: 50, RetryCost: 5, TimeoutCost: 10, Success: 2},
}

// A permit from before a reload returns nothing, but an attempt in flight ends with it.
func TestReloadOfOpenPermits(t *testing.T) {
	t.Parallel()
	for name, b := range reloadables(t) {
		permits := []Permit{}
		for range 3 {
			p, ok := b.Withdraw(t0, charge([]Kind{timeout, failure, failure}[len(permits)]))
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

// A permit survives a reload with the same config: it returns as much as without.
func TestReloadOfTheSameConfig(t *testing.T) {
	t.Parallel()
	c := RatioConfig{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 5, TimeoutBonus: 2.5}
	b := ratio(t, c.Percent, c.MinPerSecond)
	p, _ := b.Withdraw(t0, charge(timeout))
	for range 100 {
		mustReload(t, b, at(1), c)
	}
	if b.Settle(at(1), p, true); b.Balance(at(1)) != 12.5 {
		t.Errorf("balance %v; want 12.5", b.Balance(at(1)))
	}
	d := DefaultRefund()
	f := refund(t, d)
	p, _ = f.Withdraw(t0, charge(timeout))
	mustReload(t, f, t0, d)
	if f.Return(t0, p); tokens(&f.bucket) != 500 {
		t.Errorf("%v tokens; want 500", tokens(&f.bucket))
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
		for _, c := range append(configs(), RatioConfig{}, ThrottleConfig{}, ConcurrentConfig{}, RefundConfig{}, nil) {
			if c != nil && c.Name() == name && c.Check() == nil {
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
			b.Finish(t0, EndAtOnce)
		}
		if !granted(b, t0) {
			t.Errorf("%s: earns nothing after it was drained", name)
		}
	}
}

// resizable is a budget that becomes much larger and smaller in turn, and stays equally full.
type resizable struct {
	Reloadable

	configs [2]Config
}

// resizables returns budgets with 20 extra attempts when full, at either size.
func resizables(tb testing.TB) map[string]resizable {
	tb.Helper()
	r, th, c := ratio(tb, 10, 2), throttle(tb, 40, 1), concurrent(tb, 20, 20)
	f := refund(tb, RefundConfig{Capacity: 100, RetryCost: 5, TimeoutCost: 5})
	return map[string]resizable{
		"ratio":      {r, [2]Config{ratioConfig(10, 2, 10), ratioConfig(10, 1, 20)}},
		"throttle":   {th, [2]Config{ThrottleConfig{MaxTokens: 40, TokenRatio: 1}, ThrottleConfig{MaxTokens: 100, TokenRatio: 1}}},
		"concurrent": {c, [2]Config{ConcurrentConfig{Percent: 10, Min: 20}, ConcurrentConfig{Percent: 11, Min: 20}}},
		"refund": {f, [2]Config{
			RefundConfig{Capacity: 100, RetryCost: 5, TimeoutCost: 5},
			RefundConfig{Capacity: 200, RetryCost: 10, TimeoutCost: 10},
		}},
	}
}

func (r resizable) resize(t *testing.T, i int) {
	t.Helper()
	if err := r.Reload(t0, r.configs[i%2]); err != nil {
		t.Error(err)
	}
}

// While one goroutine reloads, the others withdraw: reloads don't add a single extra attempt.
func TestReloadNeverRefillsUnderStress(t *testing.T) {
	for name, b := range resizables(t) {
		var grants atomic.Int64
		together(func(g int) {
			for i := range 300 {
				switch {
				case g == 0:
					b.resize(t, i)
				case granted(b, t0):
					grants.Add(1)
					b.Fail(t0)
				}
			}
		})
		// A throttle grants withdrawals until it is told of the other failures.
		if got := grants.Load(); got > 20 && name != "throttle" {
			t.Errorf("%s: %d grants of 20", name, got)
		}
	}
}

func TestReloadLeavesNothingWhereNothingWasUnderStress(t *testing.T) {
	for name, b := range resizables(t) {
		for granted(b, t0) {
			b.Fail(t0)
		}
		together(func(g int) {
			for i := range 300 {
				if g == 0 {
					b.resize(t, i)
				} else if granted(b, t0) {
					t.Errorf("%s: granted, and balance %v", name, b.Balance(t0))
				}
			}
		})
	}
}

// All permits are returned before, during and after reloads: the budget is at most full.
func TestReloadMakesNothingUnderStress(t *testing.T) {
	for name, b := range resizables(t) {
		together(func(g int) {
			for i := range 300 {
				b.Start(t0)
				if g == 0 {
					b.resize(t, i)
				}
				if p, ok := b.Withdraw(t0, charge(failure)); ok && i%2 == 0 {
					b.Return(t0, p)
				} else if ok {
					b.Settle(t0, p, true)
				}
				if got := b.Balance(t0); got < 0 || math.IsNaN(got) {
					t.Errorf("%s: balance %v", name, got)
				}
				b.Finish(t0, EndFailed)
			}
		})
		b.resize(t, 0)
		most := 20.0
		if name == "ratio" {
			most += goroutines * 300 / 10
		}
		if got := b.Balance(t0); got > most {
			t.Errorf("%s: balance %v; want at most %v", name, got, most)
		}
	}
}
