// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redisfleet

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget/redisbudget"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
)

var write = flag.Bool("write", false, "write the tables of TestRedis into results.md")

const (
	poolKey   = "stagger:{orders}"
	rate      = 100.0 // of the pool, a second
	processes = 8
	clients   = 200
)

// start starts the processes of the group, with this many clients in all.
func (g *group) start(t *testing.T, n int, p part) (kills []func()) {
	t.Helper()
	g.rate, g.began, p.Rate = rate, unix(), rate
	p.Clients = n / processes
	for i := range processes {
		p.First = i * p.Clients
		kills = append(kills, g.add(t, p))
	}
	return kills
}

// TestRedis runs 200 clients in 8 processes, which all request ten times the available rate, through faults of Redis, its
// clock, its network and the processes. In every case, the grants in any window of time stay within the rate, plus the
// pool's capacity, and no client spends more than its grants.
func TestRedis(t *testing.T) {
	required(t)
	var (
		g       = new(group)
		primary = newServer(t)
		replica = newServer(t, "--replicaof", strings.Replace(primary.addr, ":", " ", 1))
		network = newProxy(t, primary.addr)
		kills   = g.start(t, clients, part{Addr: network.lis.Addr().String()})
		marks   []mark
	)
	phase := func(name string, d time.Duration, happens func()) {
		happens()
		from := unix() - g.began
		pass(d)
		marks = append(marks, mark{name, from, unix() - g.began})
	}
	nothing := func() {}
	clock := func(by int) func() { // Redis' time is only compared with that of earlier requests, so these may jump instead
		return func() {
			err := replica.client(t).Eval(t.Context(), `for _, f in ipairs({'at', 'slot'}) do redis.call('HINCRBY', KEYS[1], f, ARGV[1]) end`, []string{poolKey}, -by).Err()
			if err != nil && err.Error() != "redis: nil" {
				t.Error(err)
			}
		}
	}

	phase("start", 6*time.Second, nothing)
	phase("SIGSTOP, a young pool", 4*time.Second, func() { primary.Signal(t, syscall.SIGSTOP) })
	phase("SIGCONT", 5*time.Second, func() { primary.Signal(t, syscall.SIGCONT) })
	phase("kill -9 of 50 clients", 4*time.Second, func() { kills[0](); kills[1]() })
	phase("50 others", 15*time.Second, func() {
		for i := range 2 {
			g.add(t, part{Addr: network.lis.Addr().String(), First: clients + i*25, Clients: 25, Rate: rate})
		}
	})
	phase("kill -9 of Redis", 6*time.Second, primary.Kill)
	phase("it is back, and empty", 5*time.Second, func() { primary.start(t) })
	until(t, "the replica follows", func() bool {
		info := replica.client(t).Info(t.Context(), "replication").Val()
		return strings.Contains(info, "master_link_status:up") && replica.client(t).Exists(t.Context(), poolKey).Val() == 1
	})
	phase("kill -9, then failover", 5*time.Second, func() {
		primary.Kill()
		pass(2 * time.Second)
		if err := replica.client(t).ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
			t.Error(err)
		}
		network.to(replica.addr)
	})
	phase("Redis takes 300 ms", 5*time.Second, func() { network.delay.Store(int64(300 * time.Millisecond)) })
	phase("Redis takes 800 ms", 5*time.Second, func() { network.delay.Store(int64(800 * time.Millisecond)) })
	phase("fast again", 3*time.Second, func() { network.delay.Store(0) })
	phase("clock + 1 h", 3*time.Second, clock(3_600_000))
	phase("clock - 1 h", 3*time.Second, clock(-3_600_000))
	phase("FLUSHALL", 4*time.Second, func() {
		if err := replica.client(t).FlushAll(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
	for _, kill := range kills {
		kill()
	}
	list := split(g.all())
	const (
		late  = 0.5  // s, the longest time of an answer
		holds = rate // grants of the pool at once
		jump  = rate // additional grants after the clock has jumped
	)
	over, outstanding := overdrawn(list)
	granted := excess(list, rate, knownAt, leased)
	used := excess(list, rate, spentAt, spent, shared)
	tables := []report.Table{
		phases(t, replica, list, marks),
		{Title: "At most, in the same run", Columns: []string{"what", "at most"}, Rows: [][]string{
			{"granted above the rate, in any window of time", fmt.Sprintf("%.0f", granted)},
			{"spent above the rate, with the shares of the time without Redis", fmt.Sprintf("%.0f", used)},
			{"leased and not spent", fmt.Sprintf("%.0f", outstanding)},
			{"spent and not leased", fmt.Sprintf("%.0f", over)},
		}},
	}
	for _, table := range tables {
		t.Logf("%s:\n%s", table.Title, terminal.Markdown(table))
	}
	if *write {
		testkit.NoError(t, terminal.WriteInto("results.md", "redis", tables))
	}
	if most := holds + jump + rate*late; granted > most {
		t.Errorf("%.0f more than the rate were granted in a window; want at most %.0f", granted, most)
	}
	if over > 0 {
		t.Errorf("%.0f were spent that were not leased, or whose lease had ended", over)
	}
	// Each client may save one attempt of its share, and notices within two seconds that Redis is back.
	if most := holds + jump + outstanding + clients + 2*rate; used > most {
		t.Errorf("%.0f more than the rate were spent in a window; want at most %.0f", used, most)
	}
	for _, name := range []string{"start", "50 others", "FLUSHALL"} {
		if m := find(t, marks, name); m.rate(list, spent) < rate/2 {
			t.Errorf("%s: %.1f a second are spent; want some, or the test shows nothing", name, m.rate(list, spent))
		}
	}
	if m := find(t, marks, "kill -9 of Redis"); m.rate(list, shared) < rate/5 || m.rate(list, shared) > rate*1.1 {
		t.Errorf("%.1f a second of their shares, while Redis is away; want up to %v", m.rate(list, shared), rate)
	}
	if m := find(t, marks, "SIGSTOP, a young pool"); m.rate(list, shared) > 0 {
		t.Errorf("%.1f a second of their shares, before anybody knows how many there are", m.rate(list, shared))
	}
}

// mark is an event at a time in the run.
type mark struct {
	name     string
	from, to time.Duration
}

func (m mark) rate(list []entry, kinds ...string) (perSecond float64) {
	for _, e := range list {
		for _, kind := range kinds {
			if e.kind == kind && e.at >= m.from && e.at < m.to {
				perSecond += max(e.tokens, 0)
			}
		}
	}
	return perSecond / (m.to - m.from).Seconds()
}

func find(t *testing.T, marks []mark, name string) mark {
	t.Helper()
	for _, m := range marks {
		if m.name == name {
			return m
		}
	}
	t.Fatalf("no %q", name)
	return mark{}
}

// phases returns what happened in each phase of the run, as a report of today.
func phases(t *testing.T, s *server, list []entry, marks []mark) report.Table {
	t.Helper()
	_, version, _ := strings.Cut(s.client(t).Info(t.Context(), "server").Val(), "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	table := report.Table{
		Title:   fmt.Sprintf("`make redis` ran on %s with Redis %s", time.Now().UTC().Format(time.DateOnly), version),
		Columns: []string{"what happens", "s", "leased/s", "spent/s", "of shares/s", "requests/s"},
	}
	for _, m := range marks {
		requests := 0.0
		for _, e := range list {
			if (e.kind == leased || e.kind == asked) && e.at >= m.from && e.at < m.to {
				requests++
			}
		}
		row, took := []string{m.name}, (m.to - m.from).Seconds()
		for _, figure := range []float64{took, m.rate(list, leased), m.rate(list, spent), m.rate(list, shared), requests / took} {
			row = append(row, fmt.Sprintf("%.0f", figure))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// A user of Redis needs exactly the documented permissions. Redis itself reports a missing one, once.
func TestRedis_Permissions(t *testing.T) {
	required(t)
	s := newServer(t)
	admin := s.client(t)
	all := []string{"+eval", "+evalsha", "+time", "+hmget", "+hset", "+pexpire"}
	for i := range len(all) + 2 {
		name := "all of them"
		rules := []any{"ACL", "SETUSER", "user" + strconv.Itoa(i), "on", ">secret", "~stagger:*"}
		for j, rule := range all {
			if i == j {
				name = "without " + rule
				continue
			}
			rules = append(rules, rule)
		}
		if i == len(all)+1 {
			name, rules[5] = "another key", "~others:*"
		}
		t.Run(name, func(t *testing.T) {
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil { // so that EVAL is needed
				t.Fatal(err)
			}
			testkit.NoError(t, admin.Do(t.Context(), rules...).Err())
			client := redis.NewClient(&redis.Options{Addr: s.addr, Username: "user" + strconv.Itoa(i), Password: "secret", MaxRetries: -1, ContextTimeoutEnabled: true})
			defer client.Close()
			told := make(chan error, 10)
			counted := &link{Scripter: client}
			b := testkit.Must(redisbudget.New(counted, redisbudget.Config{Pool: "orders", PerSecond: rate, Changed: func(_ string, err error) { told <- err }}))(t)
			defer b.Close()
			if name == "all of them" {
				until(t, "a report is answered", func() bool { return admin.Exists(t.Context(), poolKey).Val() == 1 })
				if len(told) > 0 {
					t.Error(<-told)
				}
				return
			}
			text, before := (<-told).Error(), counted.uses.Load()
			if !strings.Contains(text, "+eval +evalsha +time +hmget +hset +pexpire") || !strings.Contains(text, poolKey) {
				t.Errorf("%v; want the permissions, and the key", text)
			}
			until(t, "it asks again", func() bool { return counted.uses.Load() > before })
			if len(told) > 0 {
				t.Errorf("told again: %v", <-told)
			}
		})
	}
}

// link counts requests.
type link struct {
	redis.Scripter

	uses atomic.Int64
}

func (l *link) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	l.uses.Add(1)
	return l.Scripter.EvalSha(ctx, sha, keys, args...)
}
