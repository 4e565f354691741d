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

// attempts is what all contenders that retry may make, the first included.
const attempts = 4

// plan is what all contenders of a comparison are told. Nothing is left to chance: no jitter.
type plan struct {
	backoff time.Duration // before each retry
	hedging time.Duration // before the hedge
	waiting int           // calls that may wait in a backoff at a time; 0: a contender's own limit
	replay  int64         // bytes that all streams may keep for replay; 0: a contender's own limit
}

// client is what a contender is to gRPC.
type client struct {
	options []grpc.DialOption
	unary   grpc.UnaryClientInterceptor // the one among the options; nil: there is none
}

// contender is a client with its own idea of retries.
type contender struct {
	name    string
	prepare func(plan) (client, error)
	// streams says why it does not retry streams: "" if it does, or is not meant to.
	serverStreams, clientStreams string
}

const (
	unaryOnly = "unary calls only"
	refuses   = "refuses these streams"
)

// Contenders by name.
const (
	bareGRPC   = "gRPC, no retries"
	middleware = "go-grpc-middleware"
	failsafes  = "failsafe-go"
	ours       = "stagger"
)

var (
	bare      = contender{name: bareGRPC, prepare: noRetries}
	builtIn   = contender{name: "gRPC's retries", prepare: serviceConfig("")}
	throttled = contender{name: "gRPC's retries, throttling", prepare: serviceConfig(throttling)}
	ecosystem = contender{name: middleware, prepare: middlewareRetry, clientStreams: refuses}
	retrying  = unary(failsafes, failsafeRetry(plain))
	budgeted  = unary(failsafes+", budget", failsafeRetry(withBudget))
	broken    = unary(failsafes+", breaker", failsafeRetry(withBreaker))
	stagger   = contender{name: ours, prepare: retries(budgetRatio)}
	unlimited = contender{name: ours + ", no budget", prepare: retries(noBudget)}
	hedges    = unary(failsafes+", hedge", failsafeHedge)
	ourHedges = contender{name: ours + ", hedge", prepare: staggerHedge(false)}
	ourTail   = contender{name: ours + ", hedge at a quantile", prepare: staggerHedge(true)}
)

func unary(name string, prepare func(plan) (client, error)) contender {
	return contender{name, prepare, unaryOnly, unaryOnly}
}

// retriers are all that retry, after the one that does not.
func retriers() []contender {
	return []contender{bare, builtIn, throttled, ecosystem, retrying, budgeted, broken, unlimited, stagger}
}
