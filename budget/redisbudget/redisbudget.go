// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package redisbudget is a [budget.Budget] whose reserve all processes of a fleet lease from one pool on Redis or Valkey.
//
// Shares of a ratio budget add up to the share of the sum. Reserves don't: ten thousand clients that may each retry
// once a second have no useful limit. With
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	orders, err := redisbudget.New(client, redisbudget.Config{Pool: "orders", PerSecond: 100})
//	…
//	defer orders.Close()
//	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithBudget("orders", orders.Budget("")))
//
// all processes that name the pool orders share 100 extra attempts a second, in addition to those that their own calls earn.
//
// No call waits for Redis: a goroutine asks in the background. A process without a lease refuses the extra attempt and asks for
// the next ones; the lease then lasts for ten seconds. A process that needs several tokens a second asks ahead. While Redis is
// unavailable, the process spends its lease, and then its share of the pool, by the last known number of clients. If the number
// is unknown, it spends nothing.
//
// Redis 5 or newer, or Valkey. Each pool is one hash, whose name has a hash tag, so that a cluster keeps it in one slot.
package redisbudget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
)

// Config is the config of a Pool.
type Config struct {
	// Pool is the name of the pool: 1 to 256 bytes. All processes with this name share one reserve.
	Pool string
	// PerSecond is the number of extra attempts that the pool earns in a second, for all processes: 0.0001 to 1,000,000. All
	// processes must give the same.
	PerSecond float64
	// Ratio is the budget of the process's own calls, which pays before the pool does. Its MinPerSecond must be 0. The zero
	// value means budget.DefaultRatio without its reserve.
	Ratio budget.RatioConfig
	// Changed is called when the pool becomes unavailable, with the error, and with nil when it is back. nil: not called. It
	// runs in the goroutine that asks, so that goroutine asks for nothing meanwhile. It may call Close.
	Changed func(pool string, err error)
}

const (
	timeout     = 500 * time.Millisecond // of a request to Redis
	longestName = 256
)

// Pool is this process's part of a pool. It is safe for concurrent use.
type Pool struct{ own *leased }

// Budget returns the budget of all targets, "", or that of one target, with its own pool: "orders/dns:///a:1" for the pool
// orders, with the same config. Give the method to interceptor.WithBudgetPerTarget. Beyond 1,000 targets, for targets whose name
// is too long, and after Close, it returns the budget of all, whose pool they share.
func (p *Pool) Budget(target string) budget.Budget {
	if target == "" {
		return p.own
	}
	return p.own.forTarget(target)
}

// Close ends the requests to Redis, of the targets as well, and waits for the running ones: no request follows. Leases are no longer
// spent; what calls earn still is. It may be called more than once, and in Config.Changed, for whose end it does not wait.
func (p *Pool) Close() error {
	p.own.close()
	return nil
}

// leased implements [budget.Budget].
type leased struct {
	client  redis.Scripter
	config  Config
	local   budget.Budget
	lease   *lease
	granted atomic.Uint64
	denied  atomic.Uint64
	cancel  context.CancelFunc
	err     atomic.Pointer[error] // of the last request; nil or a nil error: none

	requesting chan struct{} // has a value while a request runs; a channel, since tests in virtual time can't wait for a mutex

	mu      sync.Mutex         // guards all below
	targets map[string]*leased // of targets
	closed  bool
}

var _ budget.Budget = (*leased)(nil)

// New returns a Pool, and starts its goroutine: call Close in the end, and then close the client. The client must have
//
//	&redis.Options{…, ContextTimeoutEnabled: true}
//
// or the same of a cluster, because only then requests end in time. A Ring is rejected: each of its shards would have the pool.
// Requests are sent once, whatever the client's MaxRetries, because a repeated request would be granted twice. New returns an error
// for a client or config that can't be used, but not if Redis is unavailable.
func New(client redis.Scripter, c Config) (*Pool, error) {
	if c.Ratio == (budget.RatioConfig{}) {
		c.Ratio = budget.DefaultRatio()
		c.Ratio.MinPerSecond = 0
	}
	if err := errors.Join(checkClient(client), c.check()); err != nil {
		return nil, err
	}
	b, err := start(onceOnly(client), c)
	if err != nil {
		return nil, err
	}
	return &Pool{b}, nil
}

func (c *Config) check() error {
	var errs []error
	if c.Pool == "" || len(c.Pool) > longestName {
		errs = append(errs, fmt.Errorf("redisbudget: Pool %.300q: must be 1 to %d bytes", c.Pool, longestName))
	}
	if !(c.PerSecond >= 0.0001 && c.PerSecond <= 1e6) { // also true for NaN
		errs = append(errs, fmt.Errorf("redisbudget: PerSecond %v: must be 0.0001 to 1000000", c.PerSecond))
	}
	if c.Ratio.MinPerSecond != 0 {
		errs = append(errs, fmt.Errorf("redisbudget: Ratio.MinPerSecond %v: must be 0, because the pool is the reserve", c.Ratio.MinPerSecond))
	}
	return errors.Join(errs...)
}

// start returns a Pool that asks.
func start(client redis.Scripter, c Config) (*leased, error) {
	local, err := budget.New(c.Ratio)
	if err != nil {
		return nil, fmt.Errorf("redisbudget: Ratio: %w", err)
	}
	b := &leased{client: client, config: c, local: local, lease: newLease(c.PerSecond, time.Now()), requesting: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.keepAsking(ctx)
	return b, nil
}

func (b *leased) close() {
	b.mu.Lock()
	b.closed = true
	targets := b.targets
	b.targets = nil
	b.mu.Unlock()
	b.cancel()
	for _, t := range targets {
		t.close()
	}
	b.lease.end()
	b.requesting <- struct{}{} // waits for the running request; the next one finds that it is closed
	<-b.requesting
}

// mostTargets bounds the pools of targets, and with them its goroutines.
const mostTargets = 1000

// forTarget returns the budget of a target.
func (b *leased) forTarget(target string) budget.Budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.targets[target]; ok {
		return t
	}
	c := b.config
	c.Pool += "/" + target
	if b.closed || len(b.targets) >= mostTargets || len(c.Pool) > longestName {
		return b
	}
	t, _ := start(b.client, c) // its config was checked
	if b.targets == nil {
		b.targets = map[string]*leased{}
	}
	b.targets[target] = t
	return t
}

// Observe implements [budget.Budget].
func (b *leased) Observe(now time.Time, e budget.Event) { b.local.Observe(now, e) }

// Withdraw implements [budget.Budget]. What calls have earned pays first, then the lease.
func (b *leased) Withdraw(now time.Time, c budget.Charge) (budget.Permit, bool) {
	p, ok := b.local.Withdraw(now, c)
	if !ok && !c.EarnedOnly {
		p = budget.Permit{Cost: b.cost(c), Cause: c.Cause}
		p.Part, ok = b.lease.take(time.Now(), p.Cost)
	}
	if !ok {
		b.denied.Add(1)
		return budget.Permit{}, false
	}
	return p, true
}

// cost returns a charge in millionths of an extra attempt.
func (b *leased) cost(c budget.Charge) int64 {
	cost := b.config.Ratio.TimeoutCost
	if c.Cause <= budget.CauseFailure && !c.Slow {
		cost = 1
	}
	if c.Factor > 0 && c.Factor <= 100 {
		cost *= c.Factor
	}
	return max(int64(math.Round(cost*token)), 1)
}

// Settle implements [budget.Budget].
func (b *leased) Settle(now time.Time, p budget.Permit, helped bool) {
	b.granted.Add(1)
	b.local.Settle(now, b.repaid(p, helped), helped)
}

// Return implements [budget.Budget].
func (b *leased) Return(now time.Time, p budget.Permit) { b.local.Return(now, b.repaid(p, true)) }

// repaid returns a permit for the process's own budget, which settles the bonus alone of one that the lease has paid.
func (b *leased) repaid(p budget.Permit, back bool) budget.Permit {
	if p.Part != 0 {
		if back {
			b.lease.giveBack(time.Now(), p.Part, p.Cost)
		}
		p.Part, p.Cost = 0, 0
	}
	return p
}

// State implements [budget.Budget].
func (b *leased) State(now time.Time) budget.State {
	s := b.local.State(now)
	leased := float64(b.lease.balance(time.Now())) / token
	s.Balance += leased
	s.Capacity += leased
	s.Granted, s.Denied = b.granted.Load(), b.denied.Load()
	return s
}
