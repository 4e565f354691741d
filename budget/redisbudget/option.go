// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/lease"
)

// DefaultTimeout bounds a request to Redis.
const DefaultTimeout = 500 * time.Millisecond

// longestTimeout leaves half of its time to a lease that comes late.
const longestTimeout = lease.Length / 2

// Option configures a Fleet.
type Option func(*Fleet) error

// WithLogger has changes of state logged there, in place of [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return func(f *Fleet) error {
		if l == nil {
			return errors.New("redisbudget: WithLogger(nil): must be a logger; one with slog.DiscardHandler says nothing")
		}
		f.logger = l
		return nil
	}
}

// WithTimeout bounds each request to Redis, [DefaultTimeout] without it: 1ms to 5s.
func WithTimeout(d time.Duration) Option {
	return func(f *Fleet) error {
		if d < time.Millisecond || d > longestTimeout {
			return fmt.Errorf("redisbudget: WithTimeout(%v): must be 1ms to %v", d, longestTimeout)
		}
		f.timeout = d
		return nil
	}
}

// WithObserver has f called, in the pool's goroutine, when the pool can be used no more, for another reason than
// before, or again. It must not block; it may close the Fleet.
func WithObserver(f func(budget.PoolState)) Option {
	return func(fleet *Fleet) error {
		if f == nil {
			return errors.New("redisbudget: WithObserver(nil): must be a function")
		}
		fleet.changed = f
		return nil
	}
}

// checkClient refuses a client that goes on asking for longer than it is told to, and one that has several Redis for one
// pool. A Scripter that is no client of go-redis is taken as it is.
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
