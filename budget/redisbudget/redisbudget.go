// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package redisbudget is a [budget.Budget] whose reserve all processes of a fleet lease from one pool on Redis or Valkey.
//
// What successes add to the buckets of many processes adds up to the same part of all calls. Reserves don't: ten thousand full
// buckets let tens of thousands of extra attempts through at once. With
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true}) // or a cluster
//	defer client.Close()
//	orders, err := redisbudget.New(client, redisbudget.Config{
//		Pool:      "orders",
//		PerSecond: 100, // extra attempts a second to each target for all processes, beside those that each one's own calls earn
//	})
//	if err != nil {
//		return err
//	}
//	defer orders.Close()
//	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithBudget("orders", orders.Budget))
//
// all processes that name the pool orders share 100 extra attempts a second to each target, in addition to those that their own calls
// earn.
//
// A process's own bucket pays first. Its size is 0: it is empty at first, time does not fill it, and it holds only what the process's
// successes of the last window have added. It has the rules of any bucket, so a successful attempt refunds a multiple of its cost,
// within that bound or up to RefundSize, if that is more. If it can't pay, the lease does, with the same costs. An attempt that
// the lease has paid for returns its cost to the lease if it is never sent or if it succeeds, and no more: the fleet never spends
// more than the pool has granted.
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
	// Bucket is the bucket of the process's own calls, which pays before the pool does. Its Size must be 0, because the pool is the
	// reserve. Its SlowCost is also the pool's, and its Refund too, up to 1. The zero value means budget.Default with Size 0.
	Bucket budget.BucketConfig
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

// Budget returns the budget of one target, with its own pool: "orders/dns:///a:1" for the pool orders, with the same config. Give the
// method to interceptor.WithBudget. Budget("") is the budget of all targets, whose pool is orders. It is also that of targets beyond
// 1,000, of those whose name is too long, and of all after Close.
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
	client redis.Scripter
	config Config
	local  bucket
	lease  *lease
	failed atomic.Int64 // when an attempt failed, or the lease paid for a call that waited, in Unix nanoseconds
	cancel context.CancelFunc
	err    atomic.Pointer[error] // of the last request; nil or a nil error: none

	requesting chan struct{} // has a value while a request runs; a channel, since tests in virtual time can't wait for a mutex

	mu      sync.Mutex         // guards all below
	targets map[string]*leased // of targets
	closed  bool
}

// bucket is a budget of package budget, which can be read.
type bucket interface {
	budget.Budget
	budget.Stater
}

var _ bucket = (*leased)(nil)

// New returns a Pool, and starts its goroutine: call Close in the end, and then close the client. The client must have
//
//	&redis.Options{…, ContextTimeoutEnabled: true}
//
// or the same of a cluster, because only then requests end in time. A Ring is refused: each of its shards would have the pool.
// Requests are sent once, whatever the client's MaxRetries, because a repeated request would be granted twice. New returns an error
// for a client or config that can't be used, but not if Redis is unavailable.
func New(client redis.Scripter, c Config) (*Pool, error) {
	if c.Bucket == (budget.BucketConfig{}) {
		c.Bucket = budget.Default()
		c.Bucket.Size = 0
	}
	if err := errors.Join(checkClient(client), c.check()); err != nil {
		return nil, err
	}
	return &Pool{start(onceOnly(client), c)}, nil
}

func (c *Config) check() error {
	var errs []error
	if c.Pool == "" || len(c.Pool) > longestName {
		errs = append(errs, fmt.Errorf("redisbudget: Pool %.300q: must be 1 to %d bytes", c.Pool, longestName))
	}
	if !(c.PerSecond >= 0.0001 && c.PerSecond <= 1e6) { // also true for NaN
		errs = append(errs, fmt.Errorf("redisbudget: PerSecond %v: must be 0.0001 to 1000000", c.PerSecond))
	}
	if _, err := budget.New(c.Bucket); err != nil {
		errs = append(errs, fmt.Errorf("redisbudget: Bucket: %w", err))
	}
	if c.Bucket.Size > 0 {
		errs = append(errs, fmt.Errorf("redisbudget: Bucket.Size %v: must be 0, because the pool is the reserve", c.Bucket.Size))
	}
	return errors.Join(errs...)
}

// start returns a budget that asks. The config was checked.
func start(client redis.Scripter, c Config) *leased {
	b := &leased{client: client, config: c, lease: newLease(c.PerSecond, time.Now()), requesting: make(chan struct{}, 1)}
	local, _ := budget.New(c.Bucket)
	b.local, _ = local.(bucket)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.keepAsking(ctx)
	return b
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
	t := start(b.client, c)
	if b.targets == nil {
		b.targets = map[string]*leased{}
	}
	b.targets[target] = t
	return t
}

// Observe implements [budget.Budget].
func (b *leased) Observe(now time.Time, e budget.Event) {
	if e == budget.EventAttemptFailed {
		b.failed.Store(time.Now().UnixNano())
	}
	b.local.Observe(now, e)
}

// Allow implements [budget.Budget]. What the process's own calls have earned pays first, then the lease.
// While all attempts fail, the lease pays only for a call that asks the server: the bucket knows when others may return.
func (b *leased) Allow(now time.Time, c budget.Cause) (a budget.Answer, ended func(time.Time, budget.End)) {
	a, ended = b.local.Allow(now, c)
	asks := a == budget.Later && c == budget.CauseWaited && b.asks(now)
	if a != budget.No && !asks {
		return a, ended
	}
	cost := b.cost(c)
	part, ok := b.lease.take(time.Now(), cost)
	if !ok {
		return a, nil
	}
	return budget.Yes, func(_ time.Time, how budget.End) { b.lease.giveBack(time.Now(), part, b.returned(cost, how)) }
}

// asks reports whether a waiting call may ask the server although its own bucket is empty: no attempt has failed for some time, so all calls of
// this process may be waiting.
func (b *leased) asks(now time.Time) bool {
	failed, at := b.failed.Load(), time.Now().UnixNano()
	return at-failed >= int64(budget.Probe) && b.local.State(now).Balance < 1 && b.failed.CompareAndSwap(failed, at)
}

// cost returns the cost of an extra attempt, in millionths.
func (b *leased) cost(c budget.Cause) int64 {
	switch c {
	case budget.CauseFailure, budget.CauseOvertaken, budget.CauseWaited:
		return token
	default:
	}
	return int64(math.Round(b.config.Bucket.SlowCost * token))
}

// returned returns what an extra attempt gives back to the part of the lease that has paid for it.
func (b *leased) returned(cost int64, how budget.End) int64 {
	switch how {
	case budget.EndUnsent:
		return cost
	case budget.EndHelped:
		return int64(math.Round(float64(cost) * min(b.config.Bucket.Refund, 1)))
	default:
		return 0
	}
}

// State implements [budget.Stater].
func (b *leased) State(now time.Time) budget.State {
	s := b.local.State(now)
	leased := float64(b.lease.balance(time.Now())) / token
	return budget.State{Balance: s.Balance + leased, Capacity: s.Capacity + leased}
}
