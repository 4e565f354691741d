// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"google.golang.org/grpc"
)

// What is called.
const (
	service              = "stagger.compare.v1.Shop"
	callName, streamName = "Get", "Stream"
	method, streamMethod = "/" + service + "/" + callName, "/" + service + "/" + streamName
)

// attempts is what all clients that retry may make, the first included.
const attempts = 4

// plan is what all clients of a comparison are told. Nothing is left to chance: no jitter.
type plan struct {
	backoff time.Duration // before each retry
	hedging time.Duration // before the hedge
	waiting int           // calls that may wait in a backoff at a time; 0: a client's own limit
	replay  int64         // bytes that all streams may keep for replay; 0: a client's own limit
}

// setup is what a client is to gRPC.
type setup struct {
	options []grpc.DialOption
	unary   grpc.UnaryClientInterceptor // the one among the options; nil: there is none
}

// client is a client with its own idea of retries.
type client struct {
	name    string
	prepare func(plan) (setup, error)
	// streams says why it does not retry streams: "" if it does, or is not meant to.
	serverStreams, clientStreams string
}

const (
	unaryOnly = "unary calls only"
	refuses   = "refuses these streams"
)

// Clients by name.
const (
	bareGRPC   = "gRPC, no retries"
	middleware = "go-grpc-middleware"
	failsafes  = "failsafe-go"
	ours       = "stagger"
)

var (
	bare      = client{name: bareGRPC, prepare: noRetries}
	builtIn   = client{name: "gRPC's retries", prepare: serviceConfig("")}
	throttled = client{name: "gRPC's retries, throttling", prepare: serviceConfig(throttling)}
	ecosystem = client{name: middleware, prepare: middlewareRetry, clientStreams: refuses}
	retrying  = unary(failsafes, failsafeRetry(plain))
	budgeted  = unary(failsafes+", budget", failsafeRetry(withBudget))
	broken    = unary(failsafes+", breaker", failsafeRetry(withBreaker))
	stagger   = client{name: ours, prepare: retries(budgetRatio)}
	unlimited = client{name: ours + ", no budget", prepare: retries(noBudget)}
	hedges    = unary(failsafes+", hedge", failsafeHedge)
	ourHedges = client{name: ours + ", hedge", prepare: staggerHedge(false)}
	// With metrics, which are recorded and which nobody collects while calls are measured.
	bareMetrics    = client{name: bareGRPC + ", gRPC's metrics", prepare: grpcMetrics(noRetries)}
	builtInMetrics = client{name: "gRPC's retries, gRPC's metrics", prepare: grpcMetrics(serviceConfig(""))}
	ourMetrics     = client{name: ours + ", its metrics", prepare: staggerMetrics}
	allMetrics     = client{name: ours + ", its metrics and gRPC's", prepare: grpcMetrics(staggerMetrics)}

	ourTail = client{name: ours + ", hedge at a quantile", prepare: staggerHedge(true)}
)

func unary(name string, prepare func(plan) (setup, error)) client {
	return client{name, prepare, unaryOnly, unaryOnly}
}

// retryingClients are all that retry, after the one that does not.
func retryingClients() []client {
	return []client{bare, builtIn, throttled, ecosystem, retrying, budgeted, broken, unlimited, stagger}
}
