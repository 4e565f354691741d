// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// room is a pool of 100 tokens a second on a server whose clock the test sets.
type room struct {
	*miniredis.Miniredis

	budget *leased
	now    time.Time
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{Miniredis: miniredis.RunT(t), now: time.Unix(1_000_000, 0)}
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	r.budget = &leased{client: client, config: Config{Pool: "orders", PerSecond: 100}}
	r.SetTime(r.now)
	return r
}

// ask asks for tokens after the given time.
func (r *room) ask(t *testing.T, later time.Duration, tokens, least int64) int64 {
	t.Helper()
	r.now = r.now.Add(later)
	r.SetTime(r.now)
	granted, _ := r.draw(t, request{tokens: tokens * 1e6, least: least * 1e6})
	return granted / 1e6
}

// draw asks now.
func (r *room) draw(t *testing.T, asked request) (tokens int64, clients float64) {
	t.Helper()
	a, err := r.budget.draw(context.Background(), asked)
	if err != nil {
		t.Fatal(err)
	}
	return a.tokens, a.clients
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
					_, clients := r.draw(t, request{covered: 20 * time.Second})
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

// If the key holds something else, the error has Redis's text and the remedy.
func TestScript_WrongType(t *testing.T) {
	r := newRoom(t)
	if err := r.Set("stagger:{orders}", "a text"); err != nil {
		t.Fatal(err)
	}
	_, err := r.budget.draw(t.Context(), request{})
	for _, want := range []string{"key stagger:{orders}: ", "WRONGTYPE", "the key holds something else"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want the key, Redis' own error, and the advice", err)
		}
	}
}

// Answers of several versions of Redis.
func TestAdvice(t *testing.T) {
	for says, want := range map[string]string{
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 3a, on @user_script:6.":      "remove that, or give",
		"NOPERM this user has no permissions to run the 'evalsha' command":                                      "~stagger:* +eval +evalsha",
		"ERR The user executing the script can't run this command or subcommand script: 3a, on @user_script:5.": "~stagger:* +eval +evalsha",
		"NOAUTH Authentication required.":                       "user and password",
		"READONLY You can't write against a read only replica.": "follow the primary",
		"ERR unknown command 'EVALSHA'":                         "Redis 5 or newer",
		"ERR Error running script (call to f_3a): @user_script:5: Write commands not allowed after non deterministic commands. Call redis.replic": "Redis 5 or newer",
		"OOM command not allowed when used memory > 'maxmemory'.":                                                                                 "give it more memory",
		"dial tcp 127.0.0.1:6379: connect: connection refused":                                                                                    "",
	} {
		cause := errors.New(says)
		if got := explained(cause, "k"); !errors.Is(got, cause) || !strings.Contains(got.Error(), want) || !strings.HasPrefix(got.Error(), "redisbudget: key k: "+says) {
			t.Errorf("%v; want the cause, and %q", got, want)
		}
	}
}

// lossy loses the connection after Redis has run a script, before its answer is read.
type lossy struct {
	net.Conn

	scripts *atomic.Int64 // that Redis has received, over all connections
	asked   atomic.Bool
}

func (l *lossy) Write(p []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(p), []byte("\r\nevalsha\r\n")) {
		l.scripts.Add(1)
		l.asked.Store(true)
	}
	return l.Conn.Write(p)
}

func (l *lossy) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.asked.Load() && err == nil {
		l.Close()
		return 0, io.EOF
	}
	return n, err
}

// No kind of client repeats a request that may have been granted.
func TestBudget_AsksOnce(t *testing.T) {
	t.Parallel()
	type dial = func(context.Context, string, string) (net.Conn, error)
	for name, open := range map[string]func(addr string, dial dial) redis.UniversalClient{
		"a client": func(addr string, dial dial) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, ContextTimeoutEnabled: true})
		},
		"a cluster": func(addr string, dial dial) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, Dialer: dial, ContextTimeoutEnabled: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripts := new(atomic.Int64)
			client := open(miniredis.RunT(t).Addr(), func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &lossy{Conn: conn, scripts: scripts}, err
			})
			defer client.Close()
			b := &leased{client: onceOnly(client), config: Config{Pool: "orders", PerSecond: 100}}
			_, err := b.draw(t.Context(), request{})
			if got := scripts.Load(); err == nil || got != 1 {
				t.Errorf("%d scripts were sent for a request that ended with %v", got, err)
			}
		})
	}
}
