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
	options     func(attemptTimeout time.Duration) ([]grpc.DialOption, error)
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
		return contender{name, true, connections, func(time.Duration) ([]grpc.DialOption, error) { return stagger(seed) }}
	}
	return []contender{
		{"no retries", false, 1, noRetries},
		ours("stagger", 1),
		ours("stagger, 10 conns", 10),
		ours("stagger, 100 conns", 100),
		{"gRPC", false, 1, builtIn("")},
		{"gRPC, throttling", false, 1, builtIn(throttling)},
		{"grpc-middleware", false, 1, middleware},
		{"failsafe", false, 1, failsafeRetry(false)},
		{"failsafe, budget", false, 1, failsafeRetry(true)},
	}
}

func noRetries(time.Duration) ([]grpc.DialOption, error) {
	return []grpc.DialOption{grpc.WithDisableRetry()}, nil
}
