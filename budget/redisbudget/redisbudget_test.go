// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pool is a Redis in memory.
type pool struct {
	redis.Scripter

	requests atomic.Int64

	mu     sync.Mutex                      // guards answer
	answer func(wanted, least int64) []any // nil: none, until the request ends
}

func (p *pool) answers(answer func(int64, int64) []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *pool) EvalSha(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	p.requests.Add(1)
	p.mu.Lock()
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		<-ctx.Done()
		return redis.NewCmdResult(nil, ctx.Err())
	}
	wanted, _ := args[1].(int64)
	least, _ := args[2].(int64)
	values := answer(wanted, least)
	if len(values) == 0 {
		return redis.NewCmdResult(nil, errors.New("connection refused"))
	}
	return redis.NewCmdResult(values, nil)
}

func generous(wanted, _ int64) []any { return []any{wanted, "4"} }
func dry(int64, int64) []any         { return []any{int64(0), "4"} }
func down(int64, int64) []any        { return nil }

// open returns a budget with a pool of 100 a second, whose calls earn next to nothing, and a function that asks it.
func open(t *testing.T, p *pool, change func(*Config)) (*leased, func(budget.Cause) bool) {
	t.Helper()
	c := Config{Pool: "orders", PerSecond: 100}
	if change != nil {
		change(&c)
	}
	pool, err := New(p, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	synctest.Wait()
	b := pool.own
	return b, func(c budget.Cause) bool {
		answer, _ := b.Allow(time.Now(), c)
		return answer == budget.Yes
	}
}

const retry = budget.CauseFailure

// Without a lease a call is refused, and the process asks: for ten seconds it then has what it wanted.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{answer: generous}
		b, ask := open(t, p, nil)
		if ask(retry) {
			t.Error("granted without a lease")
		}
		time.Sleep(hurry)
		synctest.Wait()
		answer, ended := b.Allow(time.Now(), retry)
		if answer != budget.Yes || ask(retry) {
			t.Fatalf("allowed: %v; want one from the lease", answer == budget.Yes)
		}
		ended(time.Now(), budget.EndHelped) // which returns it
		if s := b.State(time.Now()); s != (budget.State{Balance: 1, Capacity: 1}) {
			t.Errorf("%+v; want one left", s)
		}
		time.Sleep(2 * leaseTime)
		if ask(retry) {
			t.Error("granted after the lease")
		}
		synctest.Wait()
		if b.lease.clients != 4 {
			t.Errorf("%v clients", b.lease.clients)
		}
	})
}

// What the process's own calls have earned pays first.
func TestBudget_Earnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ask := open(t, &pool{answer: generous}, nil)
		for range 10 {
			b.Observe(time.Now(), budget.EventCallSucceeded)
		}
		if !ask(retry) || ask(retry) {
			t.Error("without a lease, want one retry for what ten successes have added")
		}
	})
}

// However long no call has come, the process's own bucket has nothing: reserves of many processes would add up.
func TestBudget_NoReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ask := open(t, &pool{answer: dry}, nil)
		if ask(retry) {
			t.Error("allowed at the beginning")
		}
		for range 1000 {
			b.Observe(time.Now(), budget.EventCallSucceeded)
		}
		time.Sleep(time.Hour)
		if ask(retry) {
			t.Error("allowed by time, or by what successes added an hour ago")
		}
	})
}

// An attempt that the lease has paid for returns its cost if it was not sent or if it helped, and never more.
func TestBudget_Returns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		how    budget.End
		refund float64
		want   float64
	}{
		{budget.EndUnsent, 0, 3},
		{budget.EndFailed, 2, 0},
		{budget.EndHelped, 0, 0},
		{budget.EndHelped, 0.5, 1.5},
		{budget.EndHelped, 1, 3},
		{budget.EndHelped, 2, 3},
		{99, 2, 0},
	} {
		b := &leased{config: Config{Bucket: budget.BucketConfig{Refund: row.refund}}}
		if got := b.returned(3*token, row.how); got != int64(row.want*token) {
			t.Errorf("end %d, refund %v: %d returned; want %v", row.how, row.refund, got, row.want)
		}
	}
}

func TestBudget_Costs(t *testing.T) {
	t.Parallel()
	b := &leased{config: Config{Bucket: budget.BucketConfig{SlowCost: 3.0001}}}
	for cause, want := range map[budget.Cause]int64{budget.CauseFailure: 1_000_000, budget.CauseSlow: 3_000_100, 99: 3_000_100} {
		if got := b.cost(cause); got != want {
			t.Errorf("cause %d costs %d; want %d", cause, got, want)
		}
	}
}

// While Redis is away, a process spends its share, a quarter of the pool; without a number of clients nothing. The change is told
// once.
func TestBudget_Away(t *testing.T) {
	for name, row := range map[string]struct {
		clients string
		most    int
	}{"4 clients": {"4", 25}, "unknown": {"0", 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []error
				p := &pool{answer: func(int64, int64) []any { return []any{int64(0), row.clients} }}
				_, ask := open(t, p, func(c *Config) { c.Changed = func(_ string, err error) { told = append(told, err) } })
				p.answers(down)
				ask(retry)
				time.Sleep(time.Second)
				granted := 0
				for range 10 * 1000 { // in ten seconds
					time.Sleep(time.Millisecond)
					if ask(retry) {
						granted++
					}
				}
				if granted > 11*row.most || granted < 9*row.most {
					t.Errorf("%d granted in 10 s; want %d a second", granted, row.most)
				}
				if n := p.requests.Load(); n > 15 {
					t.Errorf("%d requests in 11 s; want one a second", n)
				}
				p.answers(dry)
				time.Sleep(2 * gap)
				if ask(retry) {
					t.Error("granted a share while Redis is there")
				}
				if len(told) != 2 || told[0] == nil || told[1] != nil {
					t.Errorf("told %v; want an error, and that it is back", told)
				}
			})
		})
	}
}

// However long Redis hangs, a call does not wait; nor does Close.
func TestBudget_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{answer: generous}
		b, ask := open(t, p, nil)
		ask(retry)
		time.Sleep(hurry)
		p.answers(nil)
		began := time.Now()
		for range 100 {
			ask(retry)
		}
		synctest.Wait()
		b.close()
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		if ask(retry) || b.lease.balance(time.Now()) != 0 {
			t.Error("a closed budget spends its lease")
		}
		b.Observe(time.Now(), budget.EventCallSucceeded)
		time.Sleep(time.Second)
		b.close()
	})
}

// An answer that the script can't return, and a client that panics, count as Redis being away.
func TestBudget_AbsurdAnswers(t *testing.T) {
	for name, answer := range map[string]func(int64, int64) []any{
		"one value":      func(int64, int64) []any { return []any{int64(0)} },
		"text":           func(int64, int64) []any { return []any{"0", "1"} },
		"no clients":     func(int64, int64) []any { return []any{int64(0), "some"} },
		"NaN clients":    func(int64, int64) []any { return []any{int64(0), "NaN"} },
		"too many":       func(int64, int64) []any { return []any{int64(0), "1e10"} },
		"below zero":     func(int64, int64) []any { return []any{int64(-1), "1"} },
		"more than that": func(wanted, _ int64) []any { return []any{wanted + 1, "1"} },
		"panic":          func(int64, int64) []any { panic("no") },
	} {
		synctest.Test(t, func(t *testing.T) {
			b, ask := open(t, &pool{answer: answer}, nil)
			if *b.err.Load() == nil || ask(retry) {
				t.Errorf("%s: believed", name)
			}
			b.close()
		})
	}
}

// A Redis that once reports a billion clients is asked again within minutes, while it is away, when a call is refused, and for reports.
func TestBudget_AbsurdCount(t *testing.T) {
	absurd := func(wanted, _ int64) []any { return []any{wanted, "1000000000"} }
	for name, row := range map[string]struct {
		then func(int64, int64) []any // what Redis answers after that
		asks bool                     // calls want extra attempts all the time
		most time.Duration
	}{
		"it is away":        {down, true, 5 * time.Minute},
		"it is there":       {generous, true, time.Second},
		"nobody wants any":  {generous, false, 10 * time.Minute},
		"away, nobody asks": {down, false, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pool{answer: absurd}
				_, ask := open(t, p, nil)
				p.answers(row.then)
				time.Sleep(10 * time.Minute) // the next answer, at most, which may fail
				before, began := p.requests.Load(), time.Now()
				for p.requests.Load() == before && time.Since(began) < time.Hour {
					if time.Sleep(time.Second / 2); row.asks {
						ask(retry)
					}
				}
				if took := time.Since(began); took > row.most {
					t.Errorf("silent for %v; want at most %v", took, row.most)
				}
				p.answers(generous)
				time.Sleep(row.most)
				allowed := 0
				for range 10 { // a refused call asks for the next one's
					if ask(retry) {
						allowed++
					}
					time.Sleep(time.Second)
				}
				if row.asks && allowed < 3 {
					t.Errorf("%d of 10 extra attempts when Redis is back", allowed)
				}
			})
		})
	}
}

// Close in Changed returns, of the pool that has changed and of all, and no request follows.
func TestBudget_CloseInChanged(t *testing.T) {
	for name, target := range map[string]string{"the pool": "", "a target's": "dns:///a"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, closed := &pool{answer: generous}, false
				var all *leased
				all, _ = open(t, p, func(c *Config) {
					c.Changed = func(string, error) {
						all.close()
						closed = true
					}
				})
				b := all
				if target != "" {
					b = all.forTarget(target).(*leased)
				}
				synctest.Wait()
				p.answers(down)
				b.Allow(time.Now(), retry)
				time.Sleep(time.Second)
				synctest.Wait()
				requests := p.requests.Load()
				time.Sleep(time.Hour)
				if !closed || p.requests.Load() != requests {
					t.Errorf("closed: %v, %d requests after it; want it closed, and none", closed, p.requests.Load()-requests)
				}
			})
		})
	}
}

// Each target has a pool of its own, until there are too many.
func TestBudget_PerTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := open(t, &pool{answer: generous}, nil)
		one, again, two := b.forTarget("dns:///a"), b.forTarget("dns:///a"), b.forTarget("dns:///b")
		if one != again || one == two || one.(*leased).config.Pool != "orders/dns:///a" {
			t.Errorf("pools %+v, %+v", one, two)
		}
		if b.forTarget(strings.Repeat("a", longestName)) != b {
			t.Error("a name that is too long has a pool of its own")
		}
		for i := range mostTargets {
			b.forTarget(string(rune('a' + i)))
		}
		if b.forTarget("another") != b {
			t.Errorf("more than %d pools", mostTargets)
		}
		b.close()
		if b.forTarget("dns:///a") != b {
			t.Error("a closed budget opens pools")
		}
	})
}

func TestNew_Wrong(t *testing.T) {
	var none *redis.Client
	plain := redis.NewClient(&redis.Options{})
	defer plain.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{ContextTimeoutEnabled: true})
	defer ring.Close()
	good, reserve, bad := Config{Pool: "orders", PerSecond: 1}, budget.Default(), budget.BucketConfig{SlowCost: 0.5}
	for name, row := range map[string]struct {
		client redis.Scripter
		config Config
		want   string
	}{
		"no client":         {nil, good, "New(nil): must be a client of Redis"},
		"a nil client":      {none, good, "New(nil): must be a client of Redis"},
		"a client as it is": {plain, good, "ContextTimeoutEnabled is false: must be true"},
		"a cluster":         {cluster, good, "ContextTimeoutEnabled is false: must be true"},
		"a ring":            {ring, good, "the client is a Ring: while a shard is down"},
		"no name":           {&pool{}, Config{PerSecond: 1}, `Pool "": must be 1 to 256 bytes`},
		"no rate":           {&pool{}, Config{Pool: "a"}, "PerSecond 0: must be 0.0001 to 1000000"},
		"NaN":               {&pool{}, Config{Pool: "a", PerSecond: math.NaN()}, "PerSecond NaN: must be"},
		"a reserve":         {&pool{}, Config{Pool: "a", PerSecond: 1, Bucket: reserve}, fmt.Sprintf("redisbudget: Bucket.Size %v: must be 0", reserve.Size)},
		"a bad bucket":      {&pool{}, Config{Pool: "a", PerSecond: 1, Bucket: bad}, "redisbudget: Bucket: budget: SlowCost 0.5: must be"},
	} {
		if b, err := New(row.client, row.config); err == nil || b != nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, %v; want %q", name, b, err, row.want)
		}
	}
}

var epoch = time.Unix(1_000_000, 0)

// In any case, tokens are spent only if they were granted, and before their lease ends.
func TestLease_NeverOverspends(t *testing.T) {
	t.Parallel()
	type paid struct {
		number uint64
		tokens int64
	}
	for seed := range uint64(300) {
		chance, now := rand.New(rand.NewPCG(seed, 0)), epoch
		l := newLease(10, now)
		var (
			asked          request
			at             time.Time
			pending        bool
			draws          []paid
			spent, granted int64
		)
		for range 100 {
			now = now.Add(time.Duration(chance.IntN(3000)) * time.Millisecond)
			switch chance.IntN(4) {
			case 0:
				n := (1 + 4*chance.Int64N(2)) * token
				if number, ok := l.take(now, n); ok {
					spent += n
					draws = append(draws, paid{number, n})
				}
			case 1:
				if pending {
					continue
				}
				if r, _, ok := l.next(now); ok {
					asked, pending, at = r, true, now
				}
			case 2:
				if !pending {
					continue
				}
				pending = false
				if chance.IntN(3) == 0 {
					l.failed(now)
					continue
				}
				n := chance.Int64N(asked.tokens/token+1) * token
				if now.Before(at.Add(leaseTime)) {
					granted += n
				}
				l.answered(now, asked, answer{tokens: n})
			default:
				if len(draws) > 0 {
					l.giveBack(now, draws[0].number, draws[0].tokens)
					spent -= draws[0].tokens
					draws = draws[1:]
				}
			}
			if b := l.balance(now); b < 0 || spent > granted || b > granted {
				t.Fatalf("seed %d, at %v: %d left, %d spent of %d granted", seed, now.Sub(epoch), b, spent, granted)
			}
		}
	}
}

// In steady state a process asks about once a second, whatever its load and its part of the pool, and is hardly ever refused once
// it needs several a second.
func TestLease_Steady(t *testing.T) {
	t.Parallel()
	for _, clients := range []float64{1, 10, 100} {
		for _, load := range []float64{0.1, 0.5, 1, 2, 3, 5, 10, 20, 50} {
			l, requests, refused, calls := newLease(100, epoch), 0, 0, 0
			ask := func(now time.Time) {
				if r, _, ok := l.next(now); ok {
					requests++
					l.answered(now, r, answer{tokens: r.tokens, clients: clients})
				}
			}
			pause := time.Duration(float64(time.Second) / load)
			for now := epoch; now.Sub(epoch) < 130*time.Second; now = now.Add(pause) {
				if now.Sub(epoch) < 10*time.Second {
					requests, calls, refused = 0, 0, 0
				}
				calls++
				if _, ok := l.take(now, token); !ok {
					refused++
				}
				for at := now; at.Before(now.Add(pause)); at = at.Add(10 * time.Millisecond) {
					ask(at)
				}
			}
			if perSecond := float64(requests) / 120; perSecond > 1.05 || load >= 5 && refused > calls/20 {
				t.Errorf("%v clients, %v calls a second: %.2f requests a second, %d of %d calls refused", clients, load, perSecond, refused, calls)
			}
		}
	}
}

// After a pool had too little, the process asks for as much only a second later, and for less at once.
func TestLease_Empty(t *testing.T) {
	t.Parallel()
	l := newLease(100, epoch)
	r, _, _ := l.next(epoch)
	l.answered(epoch, r, answer{clients: 1})
	now := epoch.Add(time.Second)
	l.take(now, 5*token)
	if r, _, _ = l.next(now); r.tokens != 10*token || r.least != 5*token {
		t.Fatalf("asks %+v; want 5 tokens now, and as many again", r)
	}
	l.answered(now, r, answer{clients: 1})
	l.take(now, 5*token)
	if _, wait, ok := l.next(now); ok || wait != gap {
		t.Errorf("asks again after %v; want a second", wait)
	}
	l.take(now, token)
	if _, wait, ok := l.next(now); ok || wait != hurry {
		t.Errorf("asks for less after %v; want %v", wait, hurry)
	}
	if _, ok := newLease(1, epoch).take(epoch, 11*token); ok {
		t.Error("more than a pool ever holds")
	}
}

// Clients of a large fleet that have started together do not report together.
func TestLease_Reports(t *testing.T) {
	t.Parallel()
	l, chance := newLease(100, epoch), rand.New(rand.NewPCG(1, 1))
	seen := map[int]int{}
	for range 1000 {
		l.reported, l.clients = epoch.Add(time.Duration(chance.IntN(int(time.Second)))), 100_000
		wait := l.nextReport().Sub(l.reported) // 200 s ± a half
		seen[int(wait/(20*time.Second))]++
	}
	for i := 5; i < 15; i++ {
		if seen[i] < 50 {
			t.Errorf("%d of 1000 reports come after %d to %d s", seen[i], 20*i, 20*i+20)
		}
	}
	if len(seen) != 10 {
		t.Errorf("%v; want 100 to 300 s", seen)
	}
}

// While all attempts fail, the lease pays for no retry: calls wait for an answer, as with a bucket.
func TestBudget_Outage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ask := open(t, &pool{answer: generous}, nil)
		ask(retry)
		time.Sleep(hurry)
		synctest.Wait()
		for range budget.AllFail {
			b.Observe(time.Now(), budget.EventAttemptFailed)
		}
		if answer, _ := b.Allow(time.Now(), retry); answer != budget.Later {
			t.Errorf("all fail: %v; want later", answer)
		}
		b.Observe(time.Now(), budget.EventAnswered)
		first, _ := b.Allow(time.Now(), budget.CauseWaited)
		if second, _ := b.Allow(time.Now(), budget.CauseWaited); first != budget.Yes || second != budget.Later {
			t.Errorf("after an answer: %v, %v; want yes, later", first, second)
		}
	})
}

// Where all calls of a process wait, the lease pays for one of them that asks the server, every 0.2 s: its own bucket may be empty.
func TestBudget_OutageProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ask := open(t, &pool{answer: generous}, nil)
		ask(retry)
		time.Sleep(hurry)
		synctest.Wait()
		for range budget.AllFail {
			b.Observe(time.Now(), budget.EventAttemptFailed)
		}
		wait := budget.CauseWaited
		if ask(wait) {
			t.Error("a call asks the server, though one has just failed")
		}
		time.Sleep(budget.Probe)
		answer, ended := b.Allow(time.Now(), wait)
		if answer != budget.Yes || ask(wait) {
			t.Fatalf("%v after 0.2 s, and again: %v; want yes, once", answer, ask(wait))
		}
		ended(time.Now(), budget.EndUnsent)
		if s := b.State(time.Now()); s.Balance != 1 {
			t.Errorf("%+v; want what an unsent attempt has cost", s)
		}
	})
}
