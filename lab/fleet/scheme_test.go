// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
)

// scheme defines the source of the reserve of clients' budgets.
type scheme struct {
	name      string
	perSecond float64                // of each client, without a pool
	reserve   func(w *world) reserve // of a new client; nil:
	latency   time.Duration          // of Redis
	loss      float64                // part of the requests to Redis that fails
	ours      bool
}

// schemes are the compared schemes.
func schemes() []scheme {
	const ms = time.Millisecond
	local := balance.DefaultRatio().MinPerSecond
	return []scheme{
		{name: fmt.Sprintf("local, %g a second each", local), perSecond: local},
		{name: "none"},
		{name: "ideal pool", reserve: newIdeal},
		{name: "long leases, Redis 1 ms", reserve: newBatch, latency: ms},
		{name: "in the backoff, Redis 1 ms", reserve: newOnDemand, latency: ms, ours: true},
		{name: "in the backoff, 20 ms", reserve: newOnDemand, latency: 20 * ms, ours: true},
		{name: "in the backoff, 20 ms, 1 % lost", reserve: newOnDemand, latency: 20 * ms, loss: 0.01, ours: true},
	}
}

// reserve is a client's part of the pool.
type reserve interface {
	balance.Lease
	tokens() *tokens
}

// tokens counts what happened to a reserve, in millionths of an extra attempt.
type tokens struct{ granted, spent int64 }
