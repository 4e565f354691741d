// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// WithRandom makes random the source of all jitter.
func WithRandom(random func() float64) Option { return withRandom(random) }

// Replayed returns the bytes that streams keep for replay.
func (r *Retrier) Replayed() int64 { return r.replayed.Load() }

// Delivered returns the number of kept service configs, and of connections with a wrapped resolver.
func (r *Retrier) Delivered() (texts, conns int) {
	t := &r.serviceConfigs.targets
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range t.conns {
		conns += len(list)
	}
	return len(t.texts), conns
}

// PoolRates returns the rates of the pools that budgets lease from, by name.
func (r *Retrier) PoolRates() (list []float64) {
	for _, s := range r.budgets.pools.States() {
		list = append(list, s.PerSecond)
	}
	return list
}

// SetMaxOutage sets the length of an outage after which calls stop waiting for a connection.
func (r *Retrier) SetMaxOutage(d time.Duration) { r.outages.bound = d }

// SetInboundShare sets the part of the time to an incoming call's deadline that calls made in it wait for a connection.
func (r *Retrier) SetInboundShare(share float64) { r.outages.share = share }

// Outages returns the number of connections that cannot connect.
func (r *Retrier) Outages() (n int) {
	r.outages.since.Range(func(any, any) bool { n++; return true })
	return n
}

// KnowLatency lets the Retrier know how long the answers of a method usually take, as after many calls, so that those are
// hedged after a fixed delay.
func (r *Retrier) KnowLatency(cc *grpc.ClientConn, method string, usual time.Duration) {
	p := decision.New(policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 2, Delay: usual}})
	c := call{callState: callState{retrier: r, policy: p, cc: cc, method: method}}
	c.know(r.rules.Load(), clock.Now())
	for range 40 {
		c.known.Answered(clock.Now(), attempts.Answer{Took: usual, Accepted: true})
	}
}

// UnaryServer returns the interceptor of ServerOptions for unary calls.
func (r *Retrier) UnaryServer() grpc.UnaryServerInterceptor { return r.unaryServer(nil) }

// Watched returns the number of kept requests of failed calls, which detect outer retries.
func (r *Retrier) Watched() int { return int(r.outer.watched.Load()) }
