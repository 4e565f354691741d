// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"bytes"
	"log/slog"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// states collects what an observer is told.
type states struct {
	mu   sync.Mutex
	list []redisbudget.State
}

func (s *states) add(state redisbudget.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, state)
}

func (s *states) all() []redisbudget.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]redisbudget.State(nil), s.list...)
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
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	fleet := redisbudget.New(client, append([]redisbudget.Option{redisbudget.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	t.Cleanup(fleet.Close)
	lease, err := fleet.Lease(budget.FleetConfig{Name: "orders", PerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the first report", func() bool { return fleet.States()[0].Requests > 0 })
	return server, fleet, lease
}

// A call is promised a token, which Redis grants in the background.
func TestFleet(t *testing.T) {
	server, fleet, lease := start(t)
	requests := fleet.States()[0].Requests
	d, ok := lease.Take(budget.Now(), 1e6)
	if !ok || !d.Asked {
		t.Fatalf("%+v, %v; want a promise", d, ok)
	}
	until(t, "the token is asked for", func() bool { return fleet.States()[0].Requests > requests })
	until(t, "it is granted", func() bool {
		if lease.Confirm(budget.Now(), d) {
			return true
		}
		d, _ = lease.Take(budget.Now(), 1e6) // the answer was not there yet
		return !d.Asked && d.Number != 0
	})
	if s := fleet.States()[0]; s.Pool != "orders" || s.Err != nil {
		t.Errorf("%+v", s)
	}
	if names := server.Keys(); len(names) != 1 || names[0] != "stagger:{orders}" {
		t.Errorf("keys %q", names)
	}
}

func TestFleet_Away(t *testing.T) {
	var told states
	var log bytes.Buffer
	server, fleet, lease := start(t, redisbudget.WithObserver(told.add), redisbudget.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	server.Close()
	until(t, "that Redis is away is seen", func() bool {
		_, _ = lease.Take(budget.Now(), 1e6)
		return fleet.States()[0].Err != nil
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "that it is back is seen", func() bool { return len(told.all()) == 2 && fleet.States()[0].Err == nil })
	if list := told.all(); list[0].Err == nil || list[1].Err != nil {
		t.Errorf("told of %+v", list)
	}
	fleet.Close()
	if text := log.String(); strings.Count(text, "cannot be reached") != 1 || strings.Count(text, "is back") != 1 {
		t.Errorf("logged\n%s", text)
	}
	if _, ok := lease.Take(budget.Now(), 1e6); ok {
		t.Error("a closed fleet promises")
	}
	if _, err := fleet.Lease(budget.FleetConfig{Name: "others", PerSecond: 1}); err == nil {
		t.Error("a closed fleet leases")
	}
}

// What Redis says against the key is said once.
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
	if err := fleet.States()[0].Err; err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("%v; want Redis' own error", err)
	}
}

func TestFleet_NilClient(t *testing.T) {
	fleet := redisbudget.New(nil)
	defer fleet.Close()
	if _, err := fleet.Lease(budget.FleetConfig{Name: "orders", PerSecond: 1}); err == nil {
		t.Error("a fleet without a client leases")
	}
}
