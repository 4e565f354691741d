// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/tools/must"
)

const (
	failure = CauseFailure
	timeout = CauseTimeout
)

const t0 = 1_000_000 * time.Hour

// at returns a time in seconds after t0.
func at(seconds float64) time.Duration {
	return t0 + time.Duration(seconds*float64(time.Second))
}

// envoys are the numbers of Envoy.
var envoys = ConcurrentConfig{Percent: 20, Min: 3}

// reloadable is the part of internal/balance's interface that only configs need.
type reloadable interface {
	kind
	Kind() string
	Reload(now time.Duration, c Config) error
	Drain(now time.Duration)
	Fresh(now time.Duration) bool
}

func newKind(c Config) (reloadable, error) {
	b, err := New(c)
	if err != nil {
		return nil, err
	}
	return b.(own).kind.(reloadable), nil
}

// made returns a budget.
func made[B reloadable](tb testing.TB, c Config) B {
	tb.Helper()
	b := must.Get(newKind(c))(tb)
	return b.(B)
}

// tokens returns the tokens of a bucket.
func tokens(b *bucket) float64 {
	n, _ := b.tokensAndCapacity()
	return float64(n) / 1000
}

func charge(k Cause) Charge { return Charge{Cause: k} }

func granted(b kind, now time.Duration) bool {
	_, ok := b.Withdraw(now, charge(failure))
	return ok
}

// spend asks for n extra attempts and returns the permits.
func spend(b kind, now time.Duration, n int) (permits []Permit) {
	for range n {
		if p, ok := b.Withdraw(now, charge(failure)); ok {
			permits = append(permits, p)
		}
	}
	return permits
}

func mustReload(t *testing.T, b reloadable, now time.Duration, c Config) {
	t.Helper()
	must.Do(t, b.Reload(now, c))
}

// kinds returns one budget of each kind, with a balance if it can have one.
func kinds(tb testing.TB) map[string]kind {
	tb.Helper()
	all := map[string]kind{"Unlimited": unlimited{}}
	for name, b := range reloadables(tb) {
		all[name] = b
	}
	return all
}

func reloadables(tb testing.TB) map[string]reloadable {
	tb.Helper()
	return map[string]reloadable{
		"ratio":      ratio(tb, 10, 1),
		"throttle":   throttle(tb, 10, 0.1),
		"concurrent": concurrent(tb, 20, 3),
	}
}

// script is a budget and its permits, in order.
type script struct {
	kind

	permits []Permit
}

// step is one line of a script: the action and its time, whether it is granted, and the balance afterwards.
type step struct {
	at      float64 // seconds
	do      func(s *script, now time.Duration) bool
	balance float64
	ok      bool
}

func look(*script, time.Duration) bool { return true }

func start(n int) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool {
		for range n {
			s.Start(now)
		}
		return true
	}
}

func withdraw(k Cause) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool {
		p, ok := s.Withdraw(now, charge(k))
		if ok {
			s.permits = append(s.permits, p)
		}
		return ok
	}
}

// slow is a withdrawal while few of the last responses were fast.
func slow(k Cause) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool {
		p, ok := s.Withdraw(now, Charge{Cause: k, Slow: true})
		s.permits = append(s.permits, p)
		return ok
	}
}

func giveBack(i int) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool { s.Return(now, s.permits[i]); return true }
}

func settle(i int, helped bool) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool { s.Settle(now, s.permits[i], helped); return true }
}

func fail(s *script, now time.Duration) bool { s.Fail(now); return true }

func missed(s *script, now time.Duration) bool { s.Missed(now); return true }

func finish(n int, e Event) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool {
		for range n {
			s.Finish(now, e)
		}
		return true
	}
}

func reload(c Config) func(*script, time.Duration) bool {
	return func(s *script, now time.Duration) bool { return s.kind.(reloadable).Reload(now, c) == nil }
}

// play runs the steps, and checks balance and denials after each.
func play(t *testing.T, b kind, steps []step) {
	t.Helper()
	s, denied := &script{kind: b}, b.Denied()
	for i, step := range steps {
		if ok := step.do(s, at(step.at)); ok != step.ok {
			t.Fatalf("step %d: granted %v; want %v", i, ok, step.ok)
		}
		if !step.ok {
			denied++
		}
		if got := b.Balance(at(step.at)); got != step.balance {
			t.Fatalf("step %d: balance %v; want %v", i, got, step.balance)
		}
		if got := b.Denied(); got != denied {
			t.Fatalf("step %d: denied %d; want %d", i, got, denied)
		}
	}
}

const goroutines = 64

// together runs f in 64 goroutines and waits for them. Its tests are not parallel: other tests would leave the goroutines only
// one processor, and they would rarely meet.
func together(f func(g int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for g := range goroutines {
		wg.Go(func() {
			<-begin
			f(g)
		})
	}
	close(begin)
	wg.Wait()
}

// TestBudget checks what holds for every budget.
func TestBudget(t *testing.T) {
	for law, holds := range map[string]func(*testing.T, kind){
		"a withdrawal is granted or counted as denied": func(t *testing.T, b kind) {
			t.Helper()
			before, refused := b.Denied(), uint64(0)
			for range 100 {
				if !granted(b, t0) {
					refused++
				}
				b.Fail(t0)
			}
			if got := b.Denied() - before; got != refused {
				t.Errorf("denied %d; want %d", got, refused)
			}
		},
		"a withdrawal of cost 1 is granted exactly while the balance covers it": func(t *testing.T, b kind) {
			t.Helper()
			for i := range 50 {
				balance := b.Balance(t0)
				_, isThrottle := b.(*throttleBudget)
				want := balance >= 1 || isThrottle && balance > 0 // A6: more than half, even by a thousandth
				if got := granted(b, t0); got != want {
					t.Fatalf("withdrawal %d at balance %v: %v; want %v", i, balance, got, want)
				}
				b.Fail(t0)
			}
		},
		"a permit says what was asked and when": func(t *testing.T, b kind) {
			t.Helper()
			for _, k := range []Cause{failure, timeout} {
				p, ok := b.Withdraw(at(1), charge(k))
				if want := (Permit{Cause: k, at: at(1), Cost: p.Cost}); ok && p != want {
					t.Errorf("permit %+v; want %+v", p, want)
				}
				if !ok && p != (Permit{}) {
					t.Errorf("refused with permit %+v; want none", p)
				}
			}
		},
		"what is returned was never taken": func(t *testing.T, b kind) {
			t.Helper()
			for _, k := range []Cause{failure, timeout} {
				before := b.Balance(t0)
				for range 1000 {
					if p, ok := b.Withdraw(t0, charge(k)); ok {
						b.Return(t0, p)
					}
				}
				if got := b.Balance(t0); got != before {
					t.Errorf("balance %v; want %v", got, before)
				}
			}
		},
		"to have helped is never less than to be returned": func(t *testing.T, b kind) {
			t.Helper()
			for _, k := range []Cause{failure, timeout} {
				before := b.Balance(t0)
				if p, ok := b.Withdraw(t0, charge(k)); ok {
					b.Settle(t0, p, true)
				}
				if got := b.Balance(t0); got < before {
					t.Errorf("balance %v; want %v or more", got, before)
				}
			}
		},
		"the balance is a number and not negative": func(t *testing.T, b kind) {
			t.Helper()
			for i := range 100 {
				now := at(float64(i))
				b.Start(now)
				for granted(b, now) && i%3 == 0 && b.Balance(now) < math.Inf(1) {
					b.Fail(now)
				}
				b.Finish(now, []Event{EventCallSucceeded, EventCallFailed}[i%2])
				if got := b.Balance(at(float64(i + i%20))); math.IsNaN(got) || got < 0 {
					t.Fatalf("balance %v", got)
				}
			}
		},
		"any time is taken": func(t *testing.T, b kind) {
			t.Helper()
			for _, now := range []time.Duration{t0, 0, math.MaxInt64, math.MinInt64, clock.Now()} {
				b.Start(now)
				p, _ := b.Withdraw(now, charge(timeout))
				b.Fail(now)
				b.Settle(now, p, true)
				b.Return(now, p)
				b.Finish(now, EventCallSucceeded)
				if got := b.Balance(now); math.IsNaN(got) || got < 0 {
					t.Errorf("at %v: balance %v", now, got)
				}
			}
		},
		"sixty-four goroutines lose no count": func(t *testing.T, b kind) {
			t.Helper()
			const each = 200
			var yes, sent atomic.Uint64
			granted, before := b.Granted(), b.Denied()
			together(func(g int) {
				for i := range each {
					now := at(float64(i) / 10)
					b.Start(now)
					b.Fail(now)
					if p, ok := b.Withdraw(now, charge(Cause(1+g%2))); ok {
						yes.Add(1)
						if i%2 == 0 {
							sent.Add(1)
							b.Settle(now, p, true)
						} else {
							b.Return(now, p)
						}
					}
					_ = b.Balance(now)
					b.Finish(now, EventCallSucceeded+Event(i%3))
				}
			})
			if got := yes.Load() + b.Denied() - before; got != goroutines*each {
				t.Errorf("granted and denied %d; want %d", got, goroutines*each)
			}
			if got := b.Granted() - granted; got != sent.Load() && b != kind(unlimited{}) { // Unlimited counts nothing
				t.Errorf("granted %d; want %d", got, sent.Load())
			}
		},
		"an attempt that did not help gives nothing back, but its place": func(t *testing.T, b kind) {
			t.Helper()
			permits := spend(b, t0, 100)
			before := b.Balance(t0)
			for _, p := range permits {
				b.Settle(t0, p, false)
			}
			if _, ok := b.(*concurrentBudget); ok {
				before = float64(len(permits))
			}
			if got := b.Balance(t0); got != before {
				t.Errorf("balance %v; want %v", got, before)
			}
		},
		"attempts that helped after failures save no more than was in flight": func(t *testing.T, b kind) {
			t.Helper()
			before := b.Balance(t0)
			for range 20 {
				for _, p := range spend(b, t0, 3) {
					b.Settle(t0, p, true)
				}
			}
			if got := b.Balance(t0); got < before || got > before+2 {
				t.Errorf("balance %v; want %v, or up to 2 more", got, before)
			}
		},
		"the capacity is what the balance is while nothing is spent": func(t *testing.T, b kind) {
			t.Helper()
			for range 20 {
				b.Start(t0)
			}
			full := b.Capacity(t0)
			if got := b.Balance(t0); got != full {
				t.Errorf("balance %v; want %v", got, full)
			}
			spend(b, t0, 2)
			if got := b.Capacity(t0); got != full {
				t.Errorf("capacity %v after spending; want %v", got, full)
			}
		},
		"a refusal changes nothing but the count": func(t *testing.T, b kind) {
			t.Helper()
			spend(b, t0, 3)
			for _, c := range []Charge{{}, {Cause: timeout}, {Cause: 200, Factor: 100}, {Factor: 99}, {Cause: timeout, Factor: 1e-9}} {
				before, denied := b.Balance(t0), b.Denied()+1
				if p, ok := b.Withdraw(t0, c); ok {
					b.Return(t0, p)
					denied--
				}
				if got := b.Balance(t0); got != before {
					t.Errorf("%+v: balance %v; want %v", c, got, before)
				}
				if got := b.Denied(); got != denied {
					t.Errorf("%+v: denied %d; want %d", c, got, denied)
				}
			}
		},
		"a factor out of bounds counts as one": func(t *testing.T, b kind) {
			t.Helper()
			one, granted := b.Withdraw(t0, Charge{Factor: 1})
			b.Return(t0, one)
			for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 100.001, math.MaxFloat64, -math.SmallestNonzeroFloat64} {
				p, ok := b.Withdraw(t0, Charge{Factor: f})
				if ok != granted || p.Cost != one.Cost {
					t.Errorf("factor %v: granted %v at %d; want %v at %d", f, ok, p.Cost, granted, one.Cost)
				}
				if ok {
					b.Return(t0, p)
				}
			}
		},
		"an attempt is never free, however small its factor": func(t *testing.T, b kind) {
			t.Helper()
			one, granted := b.Withdraw(t0, Charge{Factor: 1})
			p, ok := b.Withdraw(t0, Charge{Factor: math.SmallestNonzeroFloat64})
			if ok != granted || (p.Cost == 0) != (one.Cost == 0) {
				t.Errorf("granted %v at %d; want %v, and at 0 only if all are", ok, p.Cost, granted)
			}
		},
		"permits that nobody gave take nothing, and bring nothing that was not spent": func(t *testing.T, b kind) {
			t.Helper()
			b.Start(t0)
			most := b.Balance(t0) + 2 // what was spent, once more as bonus
			spend(b, t0, 2)
			least := b.Balance(t0)
			for _, cost := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
				for _, p := range []Permit{{at: t0, Cost: cost}, {at: -t0, Cost: cost}, {at: 2 * t0, Cost: cost, Cause: timeout, generation: 7}} {
					b.Return(t0, p)
					b.Settle(t0, p, true)
					if got := b.Balance(t0); got > most || got < least {
						t.Errorf("%+v: balance %v; want %v to %v", p, got, least, most)
					}
				}
			}
		},
	} {
		t.Run(law, func(t *testing.T) {
			for name, b := range kinds(t) {
				t.Run(name, func(t *testing.T) { holds(t, b) })
			}
		})
	}
}

// No call allocates, with or without an extra attempt. Not parallel: allocations are counted for the whole process.
func TestBudgetAllocatesNothing(t *testing.T) {
	for name, b := range kinds(t) {
		now := t0
		for what, f := range map[string]func(){
			"Start":  func() { now += time.Second; b.Start(now) },
			"Fail":   func() { b.Fail(now) },
			"Finish": func() { b.Finish(now, EventCallSucceeded); b.Finish(now, EventCallFailed) },
			"Withdraw and Settle": func() {
				if p, ok := b.Withdraw(now, charge(failure)); ok {
					b.Settle(now, p, true)
				}
			},
			"Withdraw and Return": func() {
				if p, ok := b.Withdraw(now-time.Second, charge(timeout)); ok {
					b.Return(now, p)
				}
			},
			"Balance": func() { _, _ = b.Balance(now), b.Capacity(now) },
		} {
			if n := testing.AllocsPerRun(1000, f); n != 0 {
				t.Errorf("%s: %s allocates %v times; want 0", name, what, n)
			}
		}
	}
}
