// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package redisbudget lets a fleet of clients share the reserves of their budgets, in pools on Redis or Valkey.
//
// Shares of a ratio budget add up to the share of the sum. Reserves do not: ten thousand clients that may each retry
// once a second bound nothing, and without a reserve a client that calls now and then never retries. With
//
//	ratio: {percent: 10, fleet: {name: orders, perSecond: 100}}
//
// in the policy file, and
//
//	fleet := redisbudget.New(client)
//	defer fleet.Close()
//	retrier, err := interceptor.Load("retry.yaml", interceptor.WithFleet(fleet))
//
// in the program, all processes that name the pool orders have 100 extra attempts a second together, beside what
// their own calls earn.
//
// No call waits for Redis. A process asks in the background, for a token when a call waits in its backoff anyway, and
// for more ahead when it needs several a second. While Redis cannot be reached, what is leased is spent, and then this
// client's share of the pool, by the last known number of clients; without that, nothing.
//
// Redis 5 or newer, or Valkey. Each pool is one hash, whose name has a hash tag, so that a cluster keeps it in one slot.
package redisbudget

import (
	_ "embed" // lease.lua
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
)

//go:embed lease.lua
var source string

var script = redis.NewScript(source)

// DefaultTimeout bounds a request to Redis.
const DefaultTimeout = 500 * time.Millisecond

// Fleet has pools on Redis. It is a [budget.Fleet], and safe for concurrent use.
type Fleet struct {
	client  redis.Scripter
	logger  *slog.Logger
	timeout time.Duration
	changed func(State)
	done    chan struct{} // is closed with the Fleet
	running sync.WaitGroup

	mu     sync.Mutex // guards all below
	closed bool
	pools  map[string]*pool
}

var _ budget.Fleet = (*Fleet)(nil)

// Option changes a Fleet.
type Option func(*Fleet)

// WithLogger has changes of state logged there, in place of [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(f *Fleet) { f.logger = l } }

// WithTimeout bounds each request to Redis, [DefaultTimeout] without it.
func WithTimeout(d time.Duration) Option { return func(f *Fleet) { f.timeout = d } }

// WithObserver has f called, in the pool's goroutine, when Redis can be reached no more, or again.
func WithObserver(f func(State)) Option { return func(fleet *Fleet) { fleet.changed = f } }

// New makes a Fleet of pools on Redis. The client stays the caller's, who closes it after the Fleet; give it MaxRetries
// of -1, since what is asked again has been granted twice and is wasted. A Redis that cannot be reached is no error: it
// is logged, and asked again.
func New(client redis.Scripter, options ...Option) *Fleet {
	f := &Fleet{client: client, timeout: DefaultTimeout, logger: slog.Default(), changed: func(State) {}, done: make(chan struct{}), pools: map[string]*pool{}}
	for _, option := range options {
		option(f)
	}
	return f
}

// Lease implements [budget.Fleet]. It starts the goroutine of the pool when it is named first.
func (f *Fleet) Lease(c budget.FleetConfig) (budget.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.New("redisbudget: the Fleet is closed")
	}
	if f.client == nil {
		return nil, errors.New("redisbudget: New(nil): must be a client of Redis")
	}
	p := f.pools[c.Name]
	if p == nil {
		p = newPool(f, c)
		f.pools[c.Name] = p
		f.running.Go(p.run)
	}
	p.setRate(c.PerSecond)
	return p.lease, nil
}

// Close ends the pools' goroutines. What is leased is spent no more, and ends by itself. It waits for a request that is
// on its way, no longer than its timeout.
func (f *Fleet) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.done)
	}
	f.mu.Unlock()
	f.running.Wait()
}

// State is how a pool stands.
type State struct {
	Pool      string
	PerSecond float64
	Balance   float64 // leased by this process and not spent, in extra attempts
	Clients   float64 // that share the pool; 0: not known
	Requests  uint64  // that this process has made
	Err       error   // why the last one failed; nil: it did not
}

// States are how the pools stand, by name.
func (f *Fleet) States() []State {
	f.mu.Lock()
	pools := slices.Collect(maps.Values(f.pools))
	f.mu.Unlock()
	list := make([]State, len(pools))
	for i, p := range pools {
		list[i] = p.state()
	}
	slices.SortFunc(list, func(a, b State) int { return strings.Compare(a.Pool, b.Pool) })
	return list
}
