// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/tools/outage"
)

// client is a client with its kind of retries.
type client struct {
	name        string
	ours        bool // stagger, to which
	connections int  // of each process
	processes   int  // from which the users call; 0: 1
	onSlow      onSlow
	retries     where
	options     func(storm) (outage.Options, error) // of a process
}

// where a retry goes.
type where int

const (
	wherePicked          where = iota // where the load balancing policy picks
	whereElsewhere                    // to another backend: package balancer wraps that policy
	whereElsewhereAtOnce              // likewise, with the first
)

// in returns the client for a storm.
func (c client) in(s storm) outage.Client {
	return outage.Client{Name: c.name, Connections: c.connections, Processes: c.processes, Reports: reporting, Options: func() (outage.Options, error) {
		s.process++
		options, err := c.options(s)
		// The client's own load balancing comes later, and wins.
		options.Dial = append([]grpc.DialOption{grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": ` + s.balancing(false) + `}`)}, options.Dial...)
		return options, err
	}}
}

// plain reports whether c makes one attempt per call: those are the reference.
func (c client) plain() bool { return strings.HasPrefix(c.name, noRetriesName) }

// inAll returns the number of its users' connections.
func (c client) inAll() int { return c.connections * max(c.processes, 1) }

// many reports whether its users are so many processes that what each may send at least counts.
func (c client) many() bool { return c.processes >= 100 }

// onSlow is what a client makes of an attempt that is slow.
type onSlow int

const (
	onSlowWait    onSlow = iota // it knows no attempt timeout
	onSlowTimeout               // after the storm's attempt timeout, if it has one
	onSlowHedge                 // after the storm's attempt timeout; in storms that have none too
)

// comparable reports whether stagger, which times out as the storm says, may be compared with it.
func (o onSlow) comparable(s storm) bool {
	if s.attemptTimeout == 0 && s.hedgingDelay == 0 {
		return o != onSlowHedge
	}
	return o != onSlowWait
}

// Settings that the retrying clients share; the policy file has the same for stagger.
const (
	attempts       = 5
	initialBackoff = 100 * time.Millisecond
	maxBackoff     = 2 * time.Second
	jitter         = 0.2 // of the peers: ±20 %, as in gRPC
)

// clients are the clients of most storms. The first is the reference. Clients that are played in parallel are next to each
// other in the list: stagger with the first, and not with those that flood the machine.
func clients(seed uint64) []client {
	list := append([]client{{name: noRetriesName, connections: 1, options: noRetries}}, ours("stagger", wherePicked, seed)...)
	return append(list,
		client{name: "gRPC", connections: 1, options: builtIn("", false)},
		client{name: "gRPC, throttling", connections: 1, options: builtIn(throttling, false)},
		client{name: "grpc-middleware", connections: 1, onSlow: onSlowTimeout, options: middleware},
		client{name: "failsafe", connections: 1, onSlow: onSlowTimeout, options: failsafeRetry(plain)},
		client{name: "failsafe, budget", connections: 1, onSlow: onSlowTimeout, options: failsafeRetry(withBudget)},
		client{name: "failsafe, breaker", connections: 1, onSlow: onSlowTimeout, options: failsafeRetry(withBreaker)},
		client{name: "failsafe, hedge", connections: 1, onSlow: onSlowHedge, options: failsafeRetry(withHedge)},
	)
}

// elsewhereClients are those of the storms in which some backends are worse than others: stagger with and without retries
// elsewhere, gRPC's own with them, and the peers, whose retries go where the same policy picks.
func elsewhereClients(seed uint64) []client {
	list := []client{{name: noRetriesName, connections: 1, options: noRetries}}
	list = append(list, ours("stagger", wherePicked, seed)...)
	list = append(list, ours("elsewhere", whereElsewhere, seed)...)
	list = append(list, ours("at once", whereElsewhereAtOnce, seed)...)
	return append(list,
		client{name: "gRPC", connections: 1, options: builtIn("", false)},
		client{name: "gRPC, elsewhere", connections: 1, retries: whereElsewhere, options: builtIn("", true)}, // on our balancer
		client{name: "grpc-middleware", connections: 1, onSlow: onSlowTimeout, options: middleware},
		client{name: "failsafe", connections: 1, onSlow: onSlowTimeout, options: failsafeRetry(plain)},
		client{name: "failsafe, hedge", connections: 1, onSlow: onSlowHedge, options: failsafeRetry(withHedge)},
	)
}

// ours returns stagger with 1, 10 and 100 connections.
func ours(name string, retries where, seed uint64) []client {
	of := func(name string, connections int) client {
		return client{
			name: name, ours: true, connections: connections, onSlow: onSlowTimeout, retries: retries,
			options: func(s storm) (outage.Options, error) { return stagger(s, retries, seed) },
		}
	}
	return []client{of(name, 1), of(name+", 10 conns", 10), of(name+", 100 conns", 100)}
}

const noRetriesName = "no retries"

func noRetries(storm) (outage.Options, error) {
	return outage.Options{Dial: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
}
