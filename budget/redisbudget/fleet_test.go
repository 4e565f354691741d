// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a fleet on a server in memory.
func start(t *testing.T) (*miniredis.Miniredis, *redisbudget.Fleet) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	fleet, err := redisbudget.New(client)
	if err != nil {
		t.Fatal(err)
	}
	return server, fleet
}

var orders = budget.PoolRequest{Pool: "orders", PerSecond: 100, Tokens: 1e6, Least: 1e6}

// A pool starts empty, and earns its rate. When Redis recovers, the pool continues.
func TestFleet_Draw(t *testing.T) {
	server, fleet := start(t)
	now := time.Unix(1_000_000, 0)
	draw := func() (int64, error) {
		now = now.Add(time.Second)
		server.SetTime(now)
		tokens, _, err := fleet.Draw(t.Context(), orders)
		return tokens, err
	}
	for i, want := range []int64{0, 1e6} {
		if got, err := draw(); err != nil || got != want {
			t.Errorf("second %d: %d, %v; want %d", i, got, err, want)
		}
	}
	server.Close()
	if got, err := draw(); err == nil {
		t.Errorf("%d without Redis; want an error", got)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if got, err := draw(); err != nil || got != 1e6 {
		t.Errorf("%d, %v when Redis is back; want one token", got, err)
	}
	if names := server.Keys(); len(names) != 1 || names[0] != "stagger:{orders}" {
		t.Errorf("keys %q", names)
	}
}

// If the key holds something else, the error has Redis's text and the remedy.
func TestFleet_WrongType(t *testing.T) {
	server, fleet := start(t)
	if err := server.Set("stagger:{orders}", "a text"); err != nil {
		t.Fatal(err)
	}
	_, _, err := fleet.Draw(t.Context(), orders)
	for _, want := range []string{"key stagger:{orders}: ", "WRONGTYPE", "the key holds something else"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want the key, Redis' own error, and the advice", err)
		}
	}
}

// answering is a Redis that always gives the same answer.
type answering struct {
	redis.Scripter

	values []any
}

func (a answering) EvalSha(context.Context, string, []string, ...any) *redis.Cmd {
	return redis.NewCmdResult(a.values, nil)
}

// hanging is a Redis that does not answer.
type hanging struct{ redis.Scripter }

func (hanging) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	<-ctx.Done()
	return redis.NewCmdResult(nil, ctx.Err())
}

// An answer that the script can't return is an error, and so is a timeout.
func TestFleet_NoAnswer(t *testing.T) {
	for name, client := range map[string]redis.Scripter{
		"no number of clients": answering{values: []any{int64(0), "some"}},
		"no number of tokens":  answering{values: []any{"0", "1"}},
		"one value":            answering{values: []any{int64(0)}},
		"hangs":                hanging{},
	} {
		fleet, err := redisbudget.New(client, redisbudget.Timeout(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := fleet.Draw(t.Context(), orders); err == nil {
			t.Errorf("%s: no error", name)
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
	second := redisbudget.Timeout(time.Second)
	for name, row := range map[string]struct {
		client redis.Scripter
		option redisbudget.Option
		want   string
	}{
		"no client":         {nil, second, "New(nil): must be a client of Redis"},
		"a nil client":      {none, second, "New(nil): must be a client of Redis"},
		"a client as it is": {plain, second, "ContextTimeoutEnabled is false: must be true"},
		"a cluster":         {cluster, second, "ContextTimeoutEnabled is false: must be true"},
		"a ring":            {ring, second, "the client is a Ring: while a shard is down"},
		"a nil option":      {good, nil, "option 0 is nil"},
		"no time":           {good, redisbudget.Timeout(0), "Timeout(0s): must be 1ms to 5s"},
		"too long a time":   {good, redisbudget.Timeout(6 * time.Second), "Timeout(6s): must be 1ms to 5s"},
	} {
		if fleet, err := redisbudget.New(row.client, row.option); err == nil || fleet != nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, %v; want %q", name, fleet, err, row.want)
		}
	}
}
