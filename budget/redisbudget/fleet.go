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
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	fleet := redisbudget.New(client)
//	defer fleet.Close()
//	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithFleet(fleet))
//
// in the program, all processes that name the pool orders have 100 extra attempts a second together, beside what
// their own calls earn.
//
// A process asks in the background, for a token when a call waits in its backoff anyway, and for more ahead when it needs
// several a second. The backoff is then at least twice as long as the last answers took, up to 100 ms; no call waits longer
// for Redis. While Redis cannot be reached, what is leased is spent, and then this client's share of the pool, by the last
// known number of clients; without that, nothing.
//
// Redis 5 or newer, or Valkey. Each pool is one hash, whose name has a hash tag, so that a cluster keeps it in one slot.
package redisbudget

import (
	_ "embed" // lease.lua
	"errors"
	"fmt"
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

// Fleet has pools on Redis. It is a [budget.Fleet], and safe for concurrent use.
type Fleet struct {
	client  redis.Scripter
	logger  *slog.Logger
	timeout time.Duration
	changed func(budget.PoolState)
	wrong   error          // with client or options
	done    chan struct{}  // is closed with the Fleet
	asking  sync.WaitGroup // requests that are on their way

	mu     sync.Mutex // guards all below
	closed bool
	pools  map[string]*pool
}

var _ budget.Fleet = (*Fleet)(nil)

// New makes a Fleet of pools on Redis. The client stays the caller's, who closes it after the Fleet. It must have
//
//	&redis.Options{…, ContextTimeoutEnabled: true}
//
// or the same of a cluster, since only then a request ends in time. A Ring is refused: its shards would each have the pool.
// Requests are sent once, whatever the client's MaxRetries, since a request that is sent again is granted again. What is
// wrong with client or options says [Fleet.Lease], and so whoever makes or reloads a Retrier. A Redis that cannot be
// reached is no error: it is logged, and asked again.
func New(client redis.Scripter, options ...Option) *Fleet {
	f := &Fleet{
		client: onceOnly(client), timeout: DefaultTimeout, logger: slog.Default(), changed: func(budget.PoolState) {},
		wrong: checkClient(client), done: make(chan struct{}), pools: map[string]*pool{},
	}
	for i, option := range options {
		if option == nil {
			f.wrong = errors.Join(f.wrong, fmt.Errorf("redisbudget: New: option %d is nil", i))
			continue
		}
		f.wrong = errors.Join(f.wrong, option(f))
	}
	return f
}

// Check implements [budget.Fleet].
func (f *Fleet) Check(budget.FleetConfig) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.usable()
}

// usable says why nothing can be leased; nil if it can. It requires mu.
func (f *Fleet) usable() error {
	if f.closed {
		return errors.New("redisbudget: the Fleet is closed")
	}
	return f.wrong
}

// Lease implements [budget.Fleet]. It starts the goroutine of the pool when it is named first.
func (f *Fleet) Lease(c budget.FleetConfig) (budget.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.usable(); err != nil {
		return nil, err
	}
	p := f.pools[c.Name]
	if p == nil {
		p = newPool(f, c)
		f.pools[c.Name] = p
		go p.run()
	}
	p.setRate(c.PerSecond)
	return p.lease, nil
}

// Close ends the pools' goroutines. What is leased is spent no more, and ends by itself. It waits for a request that is
// on its way, no longer than its timeout, and for no observer or logger: these may call it.
func (f *Fleet) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.done)
	}
	f.mu.Unlock()
	f.asking.Wait()
	for _, p := range f.all() {
		p.lease.End()
	}
}

// begin has Close wait for a request that may follow; false if the Fleet is closed.
func (f *Fleet) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.asking.Add(1)
	}
	return !f.closed
}

func (f *Fleet) all() []*pool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.pools))
}

// Pools implements [budget.Fleet].
func (f *Fleet) Pools() []budget.PoolState {
	pools := f.all()
	list := make([]budget.PoolState, len(pools))
	for i, p := range pools {
		list[i] = p.state()
	}
	slices.SortFunc(list, func(a, b budget.PoolState) int { return strings.Compare(a.Name, b.Name) })
	return list
}
