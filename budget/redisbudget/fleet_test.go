// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(partKey); text != "" {
		var p part
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		p.serve()
	}
	goleak.VerifyTestMain(m)
}

// states collects what an observer is told.
type states struct {
	mu   sync.Mutex
	list []budget.PoolState
}

func (s *states) add(state budget.PoolState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, state)
}

func (s *states) all() []budget.PoolState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]budget.PoolState(nil), s.list...)
}

// until waits for what happens in the background.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// start is a pool of 100 tokens a second on a server in memory.
func start(t *testing.T, options ...redisbudget.Option) (*miniredis.Miniredis, *redisbudget.Fleet, budget.Lease) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	fleet := redisbudget.New(client, append([]redisbudget.Option{redisbudget.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	t.Cleanup(fleet.Close)
	lease, err := fleet.Lease(budget.FleetConfig{Name: "orders", PerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the first report", func() bool { return fleet.Pools()[0].Requests > 0 })
	return server, fleet, lease
}

// A call is promised a token, which Redis grants in the background.
func TestFleet(t *testing.T) {
	server, fleet, lease := start(t)
	requests := fleet.Pools()[0].Requests
	d, ok := lease.Take(budget.Now(), 1e6)
	if !ok || !d.Asked {
		t.Fatalf("%+v, %v; want a promise", d, ok)
	}
	until(t, "the token is asked for", func() bool { return fleet.Pools()[0].Requests > requests })
	until(t, "it is granted", func() bool {
		if lease.Confirm(budget.Now(), d) {
			return true
		}
		d, _ = lease.Take(budget.Now(), 1e6) // the answer was not there yet
		return !d.Asked && d.Number != 0
	})
	if s := fleet.Pools()[0]; s.Name != "orders" || s.Err != nil {
		t.Errorf("%+v", s)
	}
	if names := server.Keys(); len(names) != 1 || names[0] != "stagger:{orders}" {
		t.Errorf("keys %q", names)
	}
	before := fleet.Pools()[0].PerSecond
	for _, name := range []string{"orders", "others"} {
		if err := fleet.Check(budget.FleetConfig{Name: name, PerSecond: 7 * before}); err != nil {
			t.Error(err)
		}
	}
	if pools := fleet.Pools(); len(pools) != 1 || pools[0].PerSecond != before {
		t.Errorf("Check changes the pools: %+v", pools)
	}
	fleet.Close()
	if err := fleet.Check(budget.FleetConfig{Name: "orders", PerSecond: 1}); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("Check of a closed Fleet: %v", err)
	}
}

func TestFleet_Away(t *testing.T) {
	var told states
	var log bytes.Buffer
	server, fleet, lease := start(t, redisbudget.WithObserver(told.add), redisbudget.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	server.Close()
	until(t, "that Redis is away is seen", func() bool {
		_, _ = lease.Take(budget.Now(), 1e6)
		return fleet.Pools()[0].Err != nil
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "that it is back is seen", func() bool { return len(told.all()) == 2 && fleet.Pools()[0].Err == nil })
	if list := told.all(); list[0].Err == nil || list[1].Err != nil {
		t.Errorf("told of %+v", list)
	}
	fleet.Close()
	if text := log.String(); strings.Count(text, "is away") != 1 || strings.Count(text, "is back") != 1 {
		t.Errorf("logged\n%s", text)
	}
	if _, ok := lease.Take(budget.Now(), 1e6); ok {
		t.Error("a closed fleet promises")
	}
	if _, err := fleet.Lease(budget.FleetConfig{Name: "others", PerSecond: 1}); err == nil {
		t.Error("a closed fleet leases")
	}
}

// An observer may close the Fleet that it is told of.
func TestFleet_ClosedByItsObserver(t *testing.T) {
	var fleet *redisbudget.Fleet
	closed := make(chan struct{})
	server, fleet, lease := start(t, redisbudget.WithObserver(func(budget.PoolState) {
		fleet.Close()
		close(closed)
	}))
	server.Close()
	until(t, "that Redis is away is seen", func() bool {
		_, _ = lease.Take(budget.Now(), 1e6)
		return fleet.Pools()[0].Err != nil
	})
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close waits for the observer that calls it")
	}
	if _, ok := lease.Take(budget.Now(), 1e6); ok {
		t.Error("a closed fleet promises")
	}
}

// What Redis says against the key is said once, with what to do about it.
func TestFleet_WrongType(t *testing.T) {
	var told states
	server, fleet, lease := start(t, redisbudget.WithObserver(told.add))
	server.Del("stagger:{orders}")
	if err := server.Set("stagger:{orders}", "a text"); err != nil {
		t.Fatal(err)
	}
	until(t, "the error is seen", func() bool {
		_, _ = lease.Take(budget.Now(), 1e6)
		return len(told.all()) > 0
	})
	err := fleet.Pools()[0].Err
	if err == nil || !strings.Contains(err.Error(), "key stagger:{orders}: ") || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), "the key holds something else") {
		t.Errorf("%v; want the key, Redis' own error, and the advice", err)
	}
}

// answering is a Redis that gives one answer, whatever it is asked.
type answering struct {
	redis.Scripter

	values []any
}

func (a answering) EvalSha(context.Context, string, []string, ...any) *redis.Cmd {
	return redis.NewCmdResult(a.values, nil)
}

// What the script has not returned is no answer: by a number of clients that somebody else has written there, this one
// would ask all the time or never.
func TestFleet_AbsurdAnswers(t *testing.T) {
	for text, absurd := range map[string]bool{"0.000": false, "1000000000.000": false, "1e10": true, "inf": true, "nan": true, "-1": true, "": true} {
		fleet := redisbudget.New(answering{values: []any{int64(0), text}}, redisbudget.WithLogger(slog.New(slog.DiscardHandler)))
		if _, err := fleet.Lease(budget.FleetConfig{Name: "orders", PerSecond: 1}); err != nil {
			t.Fatal(err)
		}
		until(t, "the first report", func() bool { return fleet.Pools()[0].Requests > 0 })
		fleet.Close()
		if s := fleet.Pools()[0]; (s.Err != nil) != absurd {
			t.Errorf("%q clients: %v; want an error: %v", text, s.Err, absurd)
		}
	}
}

func TestNew_Wrong(t *testing.T) {
	var none *redis.Client
	plain := redis.NewClient(&redis.Options{})
	defer plain.Close()
	good := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	defer good.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{ContextTimeoutEnabled: true})
	defer ring.Close()
	for name, row := range map[string]struct {
		client redis.Scripter
		option redisbudget.Option
		want   []string
	}{
		"no client":         {nil, redisbudget.WithTimeout(time.Second), []string{"New(nil): must be a client of Redis"}},
		"a nil client":      {none, redisbudget.WithTimeout(time.Second), []string{"New(nil): must be a client of Redis"}},
		"a client as it is": {plain, redisbudget.WithTimeout(time.Second), []string{"ContextTimeoutEnabled is false: must be true"}},
		"a cluster":         {cluster, redisbudget.WithTimeout(time.Second), []string{"ContextTimeoutEnabled is false: must be true"}},
		"a ring":            {ring, redisbudget.WithTimeout(time.Second), []string{"the client is a Ring", "use redis.NewClient, NewFailoverClient (Sentinel) or NewClusterClient"}},
		"a nil option":      {good, nil, []string{"option 0 is nil"}},
		"no time":           {good, redisbudget.WithTimeout(0), []string{"WithTimeout(0s): must be 1ms to 5s"}},
		"too long a time":   {good, redisbudget.WithTimeout(6 * time.Second), []string{"WithTimeout(6s): must be 1ms to 5s"}},
		"no logger":         {good, redisbudget.WithLogger(nil), []string{"WithLogger(nil)"}},
		"no observer":       {good, redisbudget.WithObserver(nil), []string{"WithObserver(nil)"}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := redisbudget.New(row.client, row.option)
			defer fleet.Close()
			_, err := fleet.Lease(budget.FleetConfig{Name: "orders", PerSecond: 1})
			for _, want := range row.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
			if n := len(fleet.Pools()); n > 0 {
				t.Errorf("%d pools", n)
			}
		})
	}
}
