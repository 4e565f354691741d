// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

const (
	never  = time.Hour       // for what is not to happen while it is compared
	atOnce = time.Nanosecond // for what is to cost code and no waiting
)

// comparison measures what the same operation costs several clients.
type comparison struct {
	name, what string
	plan       plan
	clients    []client
	base       string // the client that the others are measured by
	goroutines []int  // that make calls at a time, by turns
	stub       bool   // nothing but the answer stands behind an interceptor
	answer     answer
	attempts   int64       // that each operation takes, or nothing is compared
	stream     *streamKind // nil: unary calls
}

// comparisons are all that measure time.
func comparisons() []comparison {
	return slices.Concat(retryComparisons(), metricsComparisons(), streamComparisons(), hedgeComparisons())
}

var alone, crowds = []int{1}, []int{1, 2, 4, 8}

func retryComparisons() []comparison {
	p, interceptors := plan{backoff: atOnce}, []client{ecosystem, retrying, budgeted, broken, unlimited, stagger}
	return []comparison{{
		name: "success, stub", what: "a call that succeeds at once, through the interceptor alone",
		plan: p, clients: interceptors, base: ecosystem.name,
		goroutines: crowds, stub: true, answer: succeed, attempts: 1,
	}, {
		name: "success", what: "a call that succeeds at once, over gRPC in memory",
		plan: p, clients: retryingClients(), base: bare.name,
		goroutines: crowds, answer: succeed, attempts: 1,
	}, {
		name: "one failure, stub", what: "a call whose first attempt fails, through the interceptor alone",
		plan: p, clients: interceptors, base: ecosystem.name,
		goroutines: alone, stub: true, answer: failOdd, attempts: 2,
	}, {
		name: "one failure", what: "a call whose first attempt fails, over gRPC in memory",
		plan: p, clients: retryingClients()[1:], base: builtIn.name,
		goroutines: alone, answer: failOdd, attempts: 2,
	}}
}

func metricsComparisons() []comparison {
	p := plan{backoff: atOnce}
	return []comparison{{
		name: "success, metrics", what: "a call that succeeds at once, over gRPC in memory",
		plan: p, clients: []client{bare, bareMetrics, stagger, ourMetrics, allMetrics}, base: bare.name,
		goroutines: alone, answer: succeed, attempts: 1,
	}, {
		name: "one failure, metrics", what: "a call whose first attempt fails, over gRPC in memory",
		plan: p, clients: []client{builtIn, builtInMetrics, stagger, ourMetrics, allMetrics}, base: builtIn.name,
		goroutines: alone, answer: failOdd, attempts: 2,
	}}
}

func streamComparisons() (all []comparison) {
	for _, s := range []struct {
		name, what string
		kind       *streamKind
	}{
		{"server stream", "a server streams 1000 messages of 100 bytes", &serverStream},
		{"client stream", "a client streams 1000 messages of 100 bytes, and commits at the end", &clientStream},
		{"bidirectional stream", "1000 messages of 100 bytes go to and fro, one at a time", &bidiStream},
	} {
		all = append(all, comparison{
			name: s.name, what: s.what + ", over gRPC in memory",
			plan: plan{backoff: atOnce}, clients: retryingClients(), base: bare.name,
			goroutines: alone, answer: succeed, attempts: 1, stream: s.kind,
		})
	}
	return all
}

func hedgeComparisons() []comparison {
	const quick, slow = "a call that is answered before the hedge is due", "one of two attempts hangs until it is cancelled"
	const onStub, onGRPC = ", through the interceptor alone", ", over gRPC in memory"
	return []comparison{{
		name: "hedge not fired, stub", what: quick + onStub,
		plan: plan{hedging: never}, clients: []client{hedges, ourHedges, ourTail}, base: hedges.name,
		goroutines: alone, stub: true, answer: succeed, attempts: 1,
	}, {
		name: "hedge not fired", what: quick + onGRPC,
		plan: plan{hedging: never}, clients: []client{bare, hedges, ourHedges, ourTail}, base: bare.name,
		goroutines: alone, answer: succeed, attempts: 1,
	}, {
		name: "hedge fired, stub", what: slow + onStub,
		plan: plan{hedging: atOnce}, clients: []client{hedges, ourHedges}, base: hedges.name,
		goroutines: alone, stub: true, answer: hangOdd, attempts: 2,
	}, {
		name: "hedge fired", what: slow + onGRPC,
		plan: plan{hedging: atOnce}, clients: []client{hedges, ourHedges}, base: hedges.name,
		goroutines: alone, answer: hangOdd, attempts: 2,
	}}
}

// absent says why a client has no part in the comparison; "" if it has.
func (c comparison) absent(k client) string {
	switch {
	case c.stream == nil:
		return ""
	case c.stream.desc.ClientStreams:
		return k.clientStreams
	default:
		return k.serverStreams
	}
}
