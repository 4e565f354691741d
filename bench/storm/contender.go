// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"google.golang.org/grpc"
)

// contender is a client with its own idea of retries.
type contender struct {
	name        string
	ours        bool // it is stagger, which the targets are for
	connections int
	slow        slowness
	equip       func(attemptTimeout time.Duration) (gear, error)
}

// gear is what makes a service a contender: the options of its client and, in a chain, of its server.
type gear struct {
	dial  []grpc.DialOption
	serve []grpc.ServerOption
}

// slowness is what a contender makes of an attempt that is slow.
type slowness int

const (
	waits    slowness = iota // it knows no attempt timeout
	timesOut                 // after the storm's attempt timeout, if it has one
	hedges                   // after the storm's attempt timeout; in storms that have none too
)

// fits reports whether stagger, which times out as the storm says, may be compared with it.
func (w slowness) fits(s storm) bool {
	if s.attemptTimeout == 0 {
		return w != hedges
	}
	return w != waits
}

// What the contenders that retry have in common; the policy file says the same to stagger.
const (
	attempts       = 5
	initialBackoff = 100 * time.Millisecond
	maxBackoff     = 2 * time.Second
	spread         = 0.2 // jitter of the peers: ±20 %, as gRPC has it
)

// contenders are all of them. The first is what the others are measured by. Those that are played
// side by side stand side by side: stagger with the first, and not with those that flood the machine.
func contenders(seed uint64) []contender {
	ours := func(name string, connections int) contender {
		return contender{name, true, connections, timesOut, func(time.Duration) (gear, error) { return stagger(seed) }}
	}
	return []contender{
		{"no retries", false, 1, waits, noRetries},
		ours("stagger", 1),
		ours("stagger, 10 conns", 10),
		ours("stagger, 100 conns", 100),
		{"gRPC", false, 1, waits, builtIn("")},
		{"gRPC, throttling", false, 1, waits, builtIn(throttling)},
		{"grpc-middleware", false, 1, timesOut, middleware},
		{"failsafe", false, 1, timesOut, failsafeRetry(plain)},
		{"failsafe, budget", false, 1, timesOut, failsafeRetry(withBudget)},
		{"failsafe, breaker", false, 1, timesOut, failsafeRetry(withBreaker)},
		{"failsafe, hedge", false, 1, hedges, failsafeRetry(withHedge)},
	}
}

func noRetries(time.Duration) (gear, error) {
	return gear{dial: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
}
