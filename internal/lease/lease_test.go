// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/budget"
)

const token = 1e6

// asked lets the lease ask, and fails the test if it does not.
func asked(t *testing.T, l *Lease, now time.Duration) Request {
	t.Helper()
	r, at, ok := l.Next(now)
	if !ok {
		t.Fatalf("at %v: asks nothing until %v", now, at)
	}
	return r
}

func quiet(t *testing.T, l *Lease, now time.Duration) time.Duration {
	t.Helper()
	r, at, ok := l.Next(now)
	if ok {
		t.Fatalf("at %v: asks %+v; want nothing", now, r)
	}
	return at
}

func TestLease_OnDemand(t *testing.T) {
	t.Parallel()
	wakes := 0
	l := New(100, 0, func() { wakes++ })
	if r := asked(t, l, 0); r.Tokens != 0 || r.Covered != beat {
		t.Errorf("the first report is %+v", r)
	}
	l.Answered(time.Millisecond, Request{}, Answer{Clients: 10_000})

	d, ok := l.Take(time.Second, token)
	if !ok || !d.Asked || wakes != 1 {
		t.Fatalf("%+v, %v, %d wakes; want a promise, and the driver woken", d, ok, wakes)
	}
	r := asked(t, l, time.Second)
	if r.Tokens != token || r.Least != token || r.Covered != time.Second {
		t.Errorf("asks %+v", r)
	}
	if at := quiet(t, l, time.Second); at != Never {
		t.Errorf("asks again at %v, with a request on its way", at)
	}
	l.Answered(time.Second+time.Millisecond, r, Answer{Tokens: token, Clients: 10_000})
	if !l.Confirm(1100*time.Millisecond, d) {
		t.Error("what was granted is not confirmed")
	}
	if b := l.Balance(1100 * time.Millisecond); b != 0 {
		t.Errorf("%d left", b)
	}
	l.Return(1200*time.Millisecond, d)
	l.Return(1200*time.Millisecond, d)
	if b := l.Balance(1200 * time.Millisecond); b != token {
		t.Errorf("%d left after it was given back twice", b)
	}
	if b := l.Balance(time.Second + Length); b != 0 {
		t.Errorf("%d left after the lease has ended, by the time of its request", b)
	}
	if at := quiet(t, l, 5*time.Second); at != time.Second+beat {
		t.Errorf("the next report is at %v", at)
	}
}

func TestLease_Empty(t *testing.T) {
	t.Parallel()
	l := New(1, 0, func() {})
	l.Answered(0, asked(t, l, 0), Answer{})
	d, _ := l.Take(0, token)
	l.Answered(time.Millisecond, asked(t, l, 0), Answer{})
	if l.Confirm(time.Second, d) {
		t.Error("confirms what an empty pool has refused")
	}
	if _, ok := l.Take(Gap, token); ok {
		t.Error("promises, though the pool was empty a moment ago")
	}
	if _, ok := l.Take(Gap+time.Millisecond, token); !ok {
		t.Error("takes the pool for empty for ever")
	}
}

func TestLease_Away(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	l.Answered(0, asked(t, l, 0), Answer{Clients: 50})
	first, _ := l.Take(0, token)
	l.Answered(0, asked(t, l, 0), Answer{Tokens: 3 * token, Clients: 50})
	second, _ := l.Take(0, token)
	promised, ok := l.Take(0, 5*token)
	if !ok || second.Asked || !promised.Asked || !l.Confirm(0, first) {
		t.Fatal(first, second, promised)
	}
	asked(t, l, 0)
	l.Failed(time.Second)
	if l.Confirm(time.Second, promised) {
		t.Error("confirms what was never answered")
	}
	if _, ok := l.Take(time.Second, token); !ok {
		t.Error("what is leased is not spent")
	}
	if _, ok := l.Take(time.Second, token); ok {
		t.Error("spends more than was leased, at once")
	}
	granted := 0 // of 100 a second among 50: two a second
	for now := time.Second; now <= 11*time.Second; now += 10 * time.Millisecond {
		if d, ok := l.Take(now, token); ok && !d.Asked {
			granted++
		}
	}
	if granted != 20 {
		t.Errorf("%d in ten seconds; want 20, this client's share", granted)
	}
	if at := quiet(t, l, 500*time.Millisecond); at != Gap {
		t.Errorf("asks again at %v", at)
	}
	r := asked(t, l, 11*time.Second)
	l.Answered(11*time.Second, r, Answer{Clients: 50})
	if b := l.Balance(12 * time.Second); b != 0 {
		t.Errorf("%d when the pool is back; want no jump", b)
	}
}

func TestLease_AwayUnknown(t *testing.T) {
	t.Parallel()
	l := New(1e6, 0, func() {})
	asked(t, l, 0)
	l.Failed(0)
	if _, ok := l.Take(time.Hour, token); ok {
		t.Error("spends, though nobody knows how many share the pool")
	}
}

// What the pool says of its clients holds until it knows better.
func TestLease_Clients(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	now := time.Duration(0)
	for _, step := range []struct{ says, want float64 }{{0, 0}, {0.9997, 1}, {200.5, 200.5}, {0, 200.5}, {3, 3}} {
		l.Answered(now, asked(t, l, now), Answer{Clients: step.says})
		if got := l.Clients(); got != step.want {
			t.Errorf("%v clients after %v; want %v", got, step.says, step.want)
		}
		now += beat
	}
	if r := asked(t, l, now+time.Hour); r.Covered != 2*beat {
		t.Errorf("a report after an hour covers %v; want two beats", r.Covered)
	}
}

// A busy client asks once a second for what it has used.
func TestLease_Busy(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	requests, refused := 0, 0
	answer := func(now time.Duration) {
		if r, _, ok := l.Next(now); ok {
			requests++
			l.Answered(now, r, Answer{Tokens: r.Tokens, Clients: 1})
		}
	}
	answer(0)
	for now := time.Duration(0); now < time.Minute; now += 50 * time.Millisecond { // 20 a second
		d, ok := l.Take(now, token)
		answer(now)
		if !ok || d.Asked && !l.Confirm(now, d) {
			refused++
		}
	}
	if requests > 130 || refused > 0 {
		t.Errorf("%d requests a minute, %d refused; want about one a second", requests, refused)
	}
}

// Whatever happens: nobody spends what was not granted, nor after its end.
func TestLease_NeverOverspends(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.SampledFrom([]time.Duration{0, -math.MaxInt64 / 2, math.MaxInt64 / 2}).Draw(t, "clock")
		l := New(10, now, func() {})
		var (
			request Request
			pending bool
			at      time.Duration
			draws   []budget.Draw
			spent   int64 // net
			granted int64
			failed  bool
		)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				n := int64(rapid.SampledFrom([]int{1, 5}).Draw(t, "tokens")) * token
				if d, ok := l.Take(now, n); ok && !d.Asked {
					spent += n
					draws = append(draws, d)
				} else if ok {
					draws = append(draws, d)
				}
			case 2:
				if r, _, ok := l.Next(now); ok {
					request, pending, at = r, true, now
				}
			case 3:
				if !pending {
					continue
				}
				pending = false
				if failed = rapid.Bool().Draw(t, "fails"); failed {
					l.Failed(now)
					continue
				}
				n := int64(rapid.IntRange(0, int(request.Tokens/token)).Draw(t, "granted")) * token
				if now < at+Length {
					granted += n
				}
				l.Answered(now, request, Answer{Tokens: n})
			case 4:
				if len(draws) == 0 {
					continue
				}
				d := draws[0]
				draws = draws[1:]
				switch {
				case d.Asked && l.Confirm(now, d):
					spent += d.Tokens
				case !d.Asked && rapid.Bool().Draw(t, "helped"):
					l.Return(now, d)
					spent -= d.Tokens
				}
			}
			if b := l.Balance(now); b < 0 || spent > granted || b > granted {
				t.Fatalf("at %v: %d left, %d spent of %d granted", now, b, spent, granted)
			}
		}
	})
}
