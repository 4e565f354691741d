// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/outage"
)

// client is a client with its own idea of retries.
type client struct {
	name        string
	ours        bool // it is stagger, which the targets are for
	connections int
	onSlow      onSlow
	// options are those of a process in a storm with this attempt timeout; 0 is none.
	options func(attemptTimeout time.Duration) (outage.Options, error)
}

// in is the client as it is played in a storm.
func (c client) in(s storm) outage.Client {
	return outage.Client{Name: c.name, Connections: c.connections, Options: func() (outage.Options, error) { return c.options(s.attemptTimeout) }}
}

// onSlow is what a client makes of an attempt that is slow.
type onSlow int

const (
	onSlowWait    onSlow = iota // it knows no attempt timeout
	onSlowTimeout               // after the storm's attempt timeout, if it has one
	onSlowHedge                 // after the storm's attempt timeout; in storms that have none too
)

// comparable reports whether stagger, which times out as the storm says, may be compared with it.
func (o onSlow) comparable(s storm) bool {
	if s.attemptTimeout == 0 {
		return o != onSlowHedge
	}
	return o != onSlowWait
}

// What the clients that retry have in common; the policy file says the same to stagger.
const (
	attempts       = 5
	initialBackoff = 100 * time.Millisecond
	maxBackoff     = 2 * time.Second
	jitter         = 0.2 // of the peers: ±20 %, as gRPC has it
)

// clients are all of them. The first is what the others are measured by. Those that are played side by side stand
// side by side: stagger with the first, and not with those that flood the machine.
func clients(seed uint64) []client {
	ours := func(name string, connections int) client {
		return client{name, true, connections, onSlowTimeout, func(time.Duration) (outage.Options, error) { return stagger(seed) }}
	}
	return []client{
		{"no retries", false, 1, onSlowWait, noRetries},
		ours("stagger", 1),
		ours("stagger, 10 conns", 10),
		ours("stagger, 100 conns", 100),
		{"gRPC", false, 1, onSlowWait, builtIn("")},
		{"gRPC, throttling", false, 1, onSlowWait, builtIn(throttling)},
		{"grpc-middleware", false, 1, onSlowTimeout, middleware},
		{"failsafe", false, 1, onSlowTimeout, failsafeRetry(plain)},
		{"failsafe, budget", false, 1, onSlowTimeout, failsafeRetry(withBudget)},
		{"failsafe, breaker", false, 1, onSlowTimeout, failsafeRetry(withBreaker)},
		{"failsafe, hedge", false, 1, onSlowHedge, failsafeRetry(withHedge)},
	}
}

func noRetries(time.Duration) (outage.Options, error) {
	return outage.Options{Dial: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
}
