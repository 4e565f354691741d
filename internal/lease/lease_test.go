// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/balance"
)

// asked returns the lease's request, and fails the test if there is none.
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
	if r := asked(t, l, time.Second+beat); r != (Request{Covered: beat}) {
		t.Errorf("reports %+v; want %v covered", r, beat)
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

// A pool that can't pay for an expensive retry may still pay for others.
func TestLease_EmptyForTheDear(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	l.Answered(0, asked(t, l, 0), Answer{})
	dear, _ := l.Take(0, 4*token)
	r := asked(t, l, 0)
	behind, _ := l.Take(0, token)
	l.Answered(time.Millisecond, r, Answer{})
	if l.Confirm(time.Millisecond, dear) {
		t.Error("confirms what the pool has refused")
	}
	if _, ok := l.Take(time.Millisecond, 4*token); ok {
		t.Error("promises again what the pool has refused a moment ago")
	}
	later, ok := l.Take(time.Millisecond, token)
	if !ok || !later.Asked {
		t.Fatalf("%+v, %v; want a promise of less", later, ok)
	}
	if r = asked(t, l, time.Millisecond); r.Tokens < 2*token || r.Least != token {
		t.Errorf("asks %+v; want what the two others wait for", r)
	}
	l.Answered(2*time.Millisecond, r, Answer{Tokens: token})
	if !l.Confirm(2*time.Millisecond, behind) {
		t.Error("who stood behind the dear one gets nothing")
	}
	l.Answered(3*time.Millisecond, asked(t, l, 2*time.Millisecond), Answer{})
	if l.Confirm(3*time.Millisecond, later) {
		t.Error("confirms what the pool has refused")
	}
	if _, ok := l.Take(4*time.Millisecond, token); ok {
		t.Error("promises again what the pool has refused a moment ago")
	}
	quiet(t, l, 4*time.Millisecond)
}

// Cheap retries don't wait for expensive ones.
func TestLease_ThoseThatCanBePaid(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	l.Answered(0, asked(t, l, 0), Answer{})
	dear, _ := l.Take(0, 4*token)
	cheap, _ := l.Take(0, token)
	l.Answered(0, asked(t, l, 0), Answer{Tokens: 3 * token})
	if !l.Confirm(0, cheap) {
		t.Error("one token of three is not granted")
	}
	if d, ok := l.Take(0, token); !ok || d.Asked {
		t.Errorf("%+v, %v; want one of the two that are left", d, ok)
	}
	l.Answered(0, asked(t, l, 0), Answer{Tokens: 4 * token})
	if !l.Confirm(0, dear) {
		t.Error("four tokens of five are not granted")
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
		t.Error("spends, although the number of clients is unknown")
	}
}

// The number of clients from the pool's answers stays valid while a later one is unknown.
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

// granted returns a lease that was granted tokens at its start, by a pool with so many clients.
func granted(t *testing.T, perSecond float64, tokens int64, clients float64, wake func()) *Lease {
	t.Helper()
	l := New(perSecond, start, wake)
	l.Answered(start, asked(t, l, start), Answer{Tokens: tokens, Clients: clients})
	return l
}

const start = time.Hour

func TestLease_Request(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rate, clients float64
		granted       int64
		takes         []int64
		want, least   int64
	}{
		"what calls wait for": {100, 1, 0, []int64{0.7 * token, 0.6 * token}, 1.3 * token, 0.6 * token},
		"twice what they use": {100, 1, 0, []int64{token, token}, 4 * token, token},
		"less what is left":   {100, 1, token, []int64{2 * token}, 3 * token, 2 * token},
		"no more than a second of the pool, in whole tokens": {1.5, 1, 0, []int64{token, token}, 2 * token, token},
		"no more than four times its part":                   {4, 8, 0, []int64{token, token}, 2 * token, token},
		"no less than what the first one asks":               {1, 1000, 0, []int64{token, token}, token, token},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := granted(t, tt.rate, tt.granted, tt.clients, func() {})
			for _, n := range tt.takes {
				l.Take(start+Gap, n)
			}
			want := Request{Tokens: tt.want, Least: tt.least, Covered: Gap}
			if got := asked(t, l, start+Gap); got != want {
				t.Errorf("asks %+v; want %+v", got, want)
			}
		})
	}
}

// A client asks for more before calls have to wait, when its tokens last for another half second.
func TestLease_Low(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		granted int64
		takes   int
		wakes   int
		next    time.Duration
	}{
		"two in a second":        {2 * token, 2, 1, start + Gap},
		"enough for half of one": {3 * token, 2, 0, start + beat},
		"one in a second":        {token, 1, 0, start + beat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wakes := 0
			l := granted(t, 100, tt.granted, 1, func() { wakes++ })
			for range tt.takes {
				l.Take(start+Gap/2, token)
			}
			if at := quiet(t, l, start+Gap/2); at != tt.next || wakes != tt.wakes {
				t.Errorf("%d wakes, asks at %v; want %d, %v", wakes, at-start, tt.wakes, tt.next-start)
			}
		})
	}
}

func TestLease_Parts(t *testing.T) {
	t.Parallel()
	l := granted(t, 100, token, 1, func() {})
	first, _ := l.Take(start, token)
	second, _ := l.Take(start+Gap, token)
	l.Answered(start+Gap, asked(t, l, start+Gap), Answer{Tokens: 3 * token, Clients: 1})
	if b := l.Balance(start + Gap); b != 2*token {
		t.Errorf("%d left of the second part", b)
	}
	l.Return(start+Gap, first)
	if b := l.Balance(start + Gap); b != 3*token {
		t.Errorf("%d left of both parts", b)
	}
	if b := l.Balance(start + Length); b != 2*token {
		t.Errorf("%d left when the first part has ended, to which its tokens were given back", b)
	}
	if !l.Confirm(start+Length, second) || l.Confirm(start+Gap+Length, second) {
		t.Error("a promise is not kept, or is remembered after the end of the part that has paid for it")
	}
}

// A call may wait longer than its tokens last, for a server's delay: the tokens that have paid for its attempt are spent.
func TestLease_PromiseOutlastsItsPart(t *testing.T) {
	t.Parallel()
	for name, returned := range map[string]bool{"sent": false, "not sent": true} {
		l := granted(t, 100, token, 1, func() {})
		_, _ = l.Take(start, token)
		promised, _ := l.Take(start, token)
		refused, _ := l.Take(start, 5*token)
		l.Answered(start+Gap, asked(t, l, start+Gap), Answer{Tokens: 2 * token, Clients: 1})
		late := start + Gap + Length + time.Minute
		if b := l.Balance(late); !promised.Asked || b != 0 {
			t.Errorf("%s: %+v, and %d left; want a promise, and nothing", name, promised, b)
		}
		if returned {
			l.Return(late, promised)
			if b := l.Balance(late); b != 0 || l.Confirm(late, promised) {
				t.Errorf("%s: %d left after the end of the part, or it is confirmed still", name, b)
			}
			continue
		}
		if !l.Confirm(late, promised) || l.Confirm(late, refused) {
			t.Errorf("%s: what was granted is not confirmed, or what was not is", name)
		}
		if n := len(l.granted); n != 0 {
			t.Errorf("%s: %d grants are remembered for ever", name, n)
		}
	}
}

func TestLease_Share(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		clients float64
		share   int64         // of two tokens a second, in a second
		next    time.Duration // request
	}{
		"alone":                    {1, 2 * token, Gap},
		"of 1000: not all at once": {1000, 0.002 * token, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := granted(t, 2, 0, tt.clients, func() {})
			asked(t, l, start+beat)
			l.Failed(start + beat)
			now := start + beat + time.Second
			if got := l.Balance(now); got != tt.share {
				t.Errorf("share %d; want %d", got, tt.share)
			}
			d, ok := l.Take(now, tt.share/2)
			if got := l.Balance(now); !ok || got != tt.share/2 {
				t.Errorf("taken: %v; %d left", ok, got)
			}
			if l.Return(now, d); l.Balance(now) != tt.share {
				t.Errorf("%d after half of it was given back", l.Balance(now))
			}
			if at := quiet(t, l, start+beat); at != start+beat+tt.next {
				t.Errorf("asks again after %v; want %v", at-start-beat, tt.next)
			}
		})
	}
}

func TestLease_Counts(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	l.Answered(0, asked(t, l, 0), Answer{})
	granted, _ := l.Take(0, token)
	l.Answered(0, asked(t, l, 0), Answer{Tokens: token})
	l.Confirm(0, granted)
	refused, _ := l.Take(0, 5*token)
	l.Answered(0, asked(t, l, 0), Answer{})
	l.Confirm(0, refused)
	l.Take(0, 5*token) // while the pool counts as empty
	if got, want := l.Counts(), (Counts{Requests: 3, Asked: token + 12*token, Leased: token, Denied: 2}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// Clients of a large fleet that have started together do not report together.
func TestLease_Reports(t *testing.T) {
	t.Parallel()
	const clients, spread = 100_000, 200 * time.Second // 500 a second
	var tenths [10]int
	for i := range 1000 {
		begin := start + time.Duration(i)*997
		l := New(100, begin, func() {})
		l.Answered(begin, asked(t, l, begin), Answer{Clients: clients})
		at := quiet(t, l, begin) - begin
		if at < spread/2 || at >= spread*3/2 {
			t.Fatalf("the next report is after %v; want %v, half of that early to half of that late", at, spread)
		}
		tenths[(at-spread/2)*10/spread]++
	}
	for i, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("%d of 1000 clients report in tenth %d of the time; want about 100", n, i)
		}
	}
}

// The wait for a call is based on the latency of earlier answers: twice that, and the time of the running request.
func TestLease_Wait(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	now := time.Duration(0)
	answer := func(later time.Duration) {
		r := asked(t, l, now)
		now += later
		l.Answered(now, r, Answer{Tokens: r.Least})
	}
	promised := func(want time.Duration) {
		t.Helper()
		if d, ok := l.Take(now, token); !ok || !d.Asked || d.Wait != want {
			t.Fatalf("at %v: %+v, %v; want a wait of %v", now, d, ok, want)
		}
	}
	answer(10 * time.Millisecond) // the first report
	promised(20 * time.Millisecond)
	r := asked(t, l, now)
	promised(30 * time.Millisecond)
	now += 50 * time.Millisecond // (3·10 + 50)/4 = 20
	l.Answered(now, r, Answer{Tokens: r.Least})
	answer(20 * time.Millisecond)
	promised(40 * time.Millisecond)
	answer(400 * time.Millisecond)
	promised(longestWait)
}

// A lease needs whole tokens, and at least as many as the last call wanted.
func TestLease_Whole(t *testing.T) {
	t.Parallel()
	l := New(100, 0, func() {})
	l.Answered(0, asked(t, l, 0), Answer{Clients: 150})
	for i := range 3 {
		if _, ok := l.Take(time.Duration(i)*time.Millisecond, 5*token); !ok {
			t.Fatal("no promise")
		}
	}
	for range 3 { // calls wait for it, one after the other, because it is more than this client's part
		l.Answered(Gap, asked(t, l, Gap), Answer{Tokens: 5 * token, Clients: 150})
	}
	l.Take(2*Gap, 5*token)
	if r := asked(t, l, 2*Gap); r.Tokens != 5*token || r.Least != 5*token {
		t.Errorf("asks %+v", r)
	}
	l.Answered(2*Gap, Request{Tokens: 5 * token}, Answer{Clients: 30})
	for i := range 4 {
		l.Take(4*Gap+time.Duration(i)*time.Millisecond, token)
	}
	if r := asked(t, l, 4*Gap+5*time.Millisecond); r.Tokens%token != 0 || r.Tokens <= 4*token || r.Least != token {
		t.Errorf("asks %+v; want whole tokens, for the next two seconds too", r)
	}
}

// In steady state a client asks at most once a second, whatever its load, and whatever its part of the pool. It gets all that
// it needs, and wastes little.
func TestLease_Steady(t *testing.T) {
	t.Parallel()
	for _, clients := range []float64{1, 10, 100} {
		for _, load := range []float64{0.1, 0.5, 1, 1.2, 1.4, 1.6, 1.9, 2, 3, 5, 10, 20, 50} {
			l := New(100, 0, func() {})
			requests, refused, calls, before := 0, 0, 0, int64(0)
			answer := func(now time.Duration) {
				if r, _, ok := l.Next(now); ok {
					requests++
					l.Answered(now, r, Answer{Tokens: r.Tokens, Clients: clients})
				}
			}
			answer(0)
			gap := time.Duration(float64(time.Second) / load)
			const begin, end = 10 * time.Second, 130 * time.Second
			for now := time.Duration(0); now < end; now += gap {
				if now-gap < begin {
					requests, calls, refused, before = 0, 0, 0, l.Counts().Leased
				}
				calls++
				d, ok := l.Take(now, token)
				answer(now)
				if !ok || d.Asked && !l.Confirm(now, d) {
					refused++
				}
				for at := now + 10*time.Millisecond; at < now+gap; at += 10 * time.Millisecond {
					answer(at)
				}
			}
			perSecond := float64(requests) / (end - begin).Seconds()
			wasted := 1 - float64(calls-refused)*token/float64(l.Counts().Leased-before)
			if perSecond > 1.01 || refused > 0 || wasted > 0.05 {
				t.Errorf("%v clients, %v calls a second: %.2f requests a second, %d calls refused, %.0f %% wasted", clients, load, perSecond, refused, 100*wasted)
			}
		}
	}
}

// In any case, tokens are spent only if they were granted, and before their lease ends.
func TestLease_NeverOverspends(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.SampledFrom([]time.Duration{0, -math.MaxInt64 / 2, math.MaxInt64 / 2}).Draw(t, "clock")
		l := New(10, now, func() {})
		var (
			request Request
			pending bool
			at      time.Duration
			draws   []balance.Draw
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

// Tokens that were drawn from a share while the pool was away, and are returned later, are dropped.
func TestLease_ShareReturnedLate(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *Lease, now time.Duration){
		"the pool is back": func(l *Lease, now time.Duration) {
			r, _, _ := l.Next(now)
			l.Answered(now, r, Answer{Clients: 1})
		},
		"the lease has ended": func(l *Lease, _ time.Duration) { l.End() },
	} {
		l := New(1, 0, func() {})
		l.Answered(0, asked(t, l, 0), Answer{Clients: 1})
		asked(t, l, beat)
		l.Failed(beat)
		now := beat + 2*time.Second
		d, ok := l.Take(now, token)
		if !ok || d.Asked {
			t.Fatalf("%s: %+v, %v; want the share", name, d, ok)
		}
		end(l, now)
		l.Return(now, d)
		l.Failed(now)
		if b := l.Balance(now); b != 0 {
			t.Errorf("%s: %d left", name, b)
		}
		if d, ok := l.Take(now, token); ok {
			t.Errorf("%s: %+v is granted", name, d)
		}
	}
}

// A request that exceeds the pool's capacity is refused at once, so that later ones get their tokens.
func TestLease_MoreThanThePoolHolds(t *testing.T) {
	t.Parallel()
	for rate, most := range map[float64]int64{1: 10 * token, 20: 20 * token} {
		l := New(rate, 0, func() {})
		l.Answered(0, asked(t, l, 0), Answer{Clients: 1})
		if d, ok := l.Take(time.Second, most+1); ok {
			t.Errorf("%+v is promised of a pool that never holds it", d)
		}
		d, ok := l.Take(time.Second, most)
		if !ok || !d.Asked {
			t.Errorf("%+v, %v; want a promise", d, ok)
		}
	}
}

// Tokens that have expired when the answer arrives pay for nothing.
func TestLease_AnsweredAfterItsPart(t *testing.T) {
	t.Parallel()
	l := New(10, 0, func() {})
	d, ok := l.Take(0, token)
	r, _, asks := l.Next(0)
	l.Answered(Length, r, Answer{Tokens: token})
	if !ok || !d.Asked || !asks || l.Confirm(Length, d) {
		t.Errorf("%+v, %v, %+v, %v; want a promise that is not kept", d, ok, r, asks)
	}
}
