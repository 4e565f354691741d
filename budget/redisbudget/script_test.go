// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
)

// room is a pool of 100 tokens a second on a server whose clock the test sets.
type room struct {
	*miniredis.Miniredis

	fleet *Fleet
	now   time.Time
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{Miniredis: miniredis.RunT(t), now: time.Unix(1_000_000, 0)}
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	fleet, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	r.fleet = fleet
	r.SetTime(r.now)
	return r
}

// ask asks for tokens after the given time.
func (r *room) ask(t *testing.T, later time.Duration, tokens, least int64) int64 {
	t.Helper()
	r.now = r.now.Add(later)
	r.SetTime(r.now)
	granted, _ := r.draw(t, budget.PoolRequest{Tokens: tokens * 1e6, Least: least * 1e6})
	return granted / 1e6
}

// draw asks now.
func (r *room) draw(t *testing.T, request budget.PoolRequest) (tokens int64, clients float64) {
	t.Helper()
	request.Pool, request.PerSecond = "orders", 100
	tokens, clients, err := r.fleet.Draw(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	return tokens, clients
}

func TestScript(t *testing.T) {
	r := newRoom(t)
	for i, step := range []struct {
		later         time.Duration
		tokens, least int64
		want          int64
	}{
		{0, 10, 1, 0}, // a new pool is empty
		{100 * time.Millisecond, 50, 1, 10},
		{100 * time.Millisecond, 50, 20, 0}, // fewer are useless, so they stay
		{100 * time.Millisecond, 50, 20, 20},
		{time.Hour, 1000, 1, 100}, // it holds at most the earnings of a second
		{-time.Hour, 10, 1, 0},    // a clock that goes back adds nothing
		{10 * time.Millisecond, 10, 1, 1},
		{15 * time.Millisecond, 10, 1, 1}, // half a token stays
		{5 * time.Millisecond, 10, 1, 1},
		{time.Second, 0, 0, 0}, // a report
		{0, 1000, 1, 100},
	} {
		if got := r.ask(t, step.later, step.tokens, step.least); got != step.want {
			t.Errorf("step %d: %d tokens; want %d", i, got, step.want)
		}
	}
	r.FlushAll()
	if got := r.ask(t, time.Minute, 1000, 1); got != 0 {
		t.Errorf("%d tokens of a key that was lost; want none", got)
	}
}

// The pool counts its clients by the time that their reports cover, however rarely they report. Whatever happens to Redis and
// its clock, it never returns too small a number: it then returns that it is unknown.
func TestScript_Clients(t *testing.T) {
	const clients = 40
	for name, row := range map[string]struct {
		happens func(r *room)
		atMost  float64
		unknown bool // for one slot
	}{
		"nothing":                   {func(*room) {}, clients * 1.1, false},
		"the clock goes forward":    {func(r *room) { r.now = r.now.Add(time.Hour) }, clients * 1.1, false},
		"the clock goes back":       {func(r *room) { r.now = r.now.Add(-time.Hour) }, clients * 1.1, false},
		"the key is lost":           {func(r *room) { r.FlushAll() }, clients * 1.1, true},
		"Redis was away for 10 min": {func(r *room) { r.now = r.now.Add(10 * time.Minute) }, clients * 1.1, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			report := func(steps int, check func(step int, known float64)) { // each one every 20 s, one after the other
				for step := range steps {
					r.now = r.now.Add(20 * time.Second / clients)
					r.SetTime(r.now)
					_, clients := r.draw(t, budget.PoolRequest{Covered: 20 * time.Second})
					check(step, clients)
				}
			}
			known := func(step int, n float64) {
				if n < clients*0.95 || n > row.atMost {
					t.Fatalf("step %d: %v clients; want %d", step, n, clients)
				}
			}
			slot := func(step int, n float64) {
				if step < 30*clients/20 && n != 0 {
					t.Fatalf("step %d: %v clients, before a slot has ended; want unknown", step, n)
				}
			}
			report(2*clients, slot)
			report(4*clients, known)
			row.happens(r)
			if row.unknown {
				report(2*clients, slot)
			}
			report(6*clients, known)
		})
	}
}

// Many concurrent processes together get at most the rate.
func TestScript_NeverOverspends(t *testing.T) {
	r := newRoom(t)
	granted := int64(0)
	for range 1000 {
		granted += r.ask(t, 10*time.Millisecond, 7, 1)
	}
	if granted > 1000+100 || granted < 950 {
		t.Errorf("%d tokens in ten seconds; want 1000, of 100 a second", granted)
	}
}
