// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package redisbudget lets a fleet of clients share the reserves of their budgets, in pools on Redis or Valkey.
//
// Shares of a ratio budget add up to the share of the sum. Reserves don't: ten thousand clients that may each retry
// once a second have no useful limit, and without a reserve a client that calls now and then never retries. With
//
//	ratio: {percent: 10, fleet: {name: orders, perSecond: 100}}
//
// in the policy file, and
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	fleet, err := redisbudget.New(client)
//	…
//	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithFleet(fleet))
//	defer retrier.Close() // before client.Close()
//
// in the program, all processes that name the pool orders share 100 extra attempts a second, in addition to those that
// their own calls earn.
//
// A Retrier asks in the background: for a token while a call waits in its backoff, and for more in advance when it needs
// several per second. The backoff is then at least twice as long as the last answers took, up to 100 ms; no call waits longer
// for Redis. While Redis is unavailable, the client spends its lease, and then its share of the pool, by the last
// known number of clients. If the number is unknown, it spends nothing.
//
// Redis 5 or newer, or Valkey. Each pool is one hash, whose name has a hash tag, so that a cluster keeps it in one slot.
package redisbudget

import (
	"context"
	_ "embed" // lease.lua
	"errors"
	"fmt"
	"math"
	"strconv"
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
	timeout time.Duration
}

var _ budget.Fleet = (*Fleet)(nil)

// defaultTimeout bounds a request to Redis.
const defaultTimeout = 500 * time.Millisecond

// longestTimeout is the longest that a Retrier waits for a request.
const longestTimeout = 5 * time.Second

// Option configures a Fleet.
type Option func(*Fleet) error

// Timeout bounds each request to Redis, 500ms without it: 1ms to 5s.
func Timeout(d time.Duration) Option {
	return func(f *Fleet) error {
		if d < time.Millisecond || d > longestTimeout {
			return fmt.Errorf("redisbudget: Timeout(%v): must be 1ms to %v", d, longestTimeout)
		}
		f.timeout = d
		return nil
	}
}

// New returns a Fleet with pools on Redis. The caller closes the client after the Retrier. The client must have
//
//	&redis.Options{…, ContextTimeoutEnabled: true}
//
// or the same of a cluster, because only then requests end in time. A Ring is refused: each of its shards would have the pool.
// Requests are sent once, whatever the client's MaxRetries, because a repeated request would be granted twice. New returns an error
// for a client or options that can't be used, but not if Redis is unavailable.
func New(client redis.Scripter, options ...Option) (*Fleet, error) {
	f := &Fleet{client: onceOnly(client), timeout: defaultTimeout}
	err := checkClient(client)
	for i, option := range options {
		if option == nil {
			err = errors.Join(err, fmt.Errorf("redisbudget: New: option %d is nil", i))
			continue
		}
		err = errors.Join(err, option(f))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// checkClient refuses a client that ignores deadlines, and one with several Redis for one
// pool. It accepts any Scripter that isn't a client of go-redis.
func checkClient(client redis.Scripter) error {
	is, ends := client != nil, true
	switch c := client.(type) {
	case *redis.Client:
		if is = c != nil; is {
			ends = c.Options().ContextTimeoutEnabled
		}
	case *redis.ClusterClient:
		if is = c != nil; is {
			ends = c.Options().ContextTimeoutEnabled
		}
	case *redis.Ring:
		return errors.New("redisbudget: New: the client is a Ring: while a shard is down, or seems so to some clients, a pool " +
			"has a second life on another, and grants its rate twice; use redis.NewClient, NewFailoverClient (Sentinel) or NewClusterClient")
	}
	switch {
	case !is:
		return errors.New("redisbudget: New(nil): must be a client of Redis")
	case !ends:
		return errors.New("redisbudget: New: the client's ContextTimeoutEnabled is false: must be true, so that requests end in time")
	}
	return nil
}

// Draw implements [budget.Fleet], with one run of a script. Errors include the remedy for an answer of Redis.
func (f *Fleet) Draw(ctx context.Context, r budget.PoolRequest) (tokens int64, clients float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	key, rate := "stagger:{"+r.Pool+"}", int64(math.Round(r.PerSecond*1e6))
	values, err := script.Run(ctx, f.client, []string{key}, rate, r.Tokens, r.Least, r.Covered.Milliseconds()).Slice()
	if err != nil {
		return 0, 0, explained(err, key)
	}
	if len(values) != 2 {
		return 0, 0, fmt.Errorf("redisbudget: the script returned %d values; want 2", len(values))
	}
	tokens, isNumber := values[0].(int64)
	text, _ := values[1].(string)
	clients, err = strconv.ParseFloat(text, 64)
	if err != nil || !isNumber {
		return 0, 0, fmt.Errorf("redisbudget: the script returned %v", values)
	}
	return tokens, clients, nil
}
