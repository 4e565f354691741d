// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Replayed returns the bytes that streams keep for replay.
func (r *Retrier) Replayed() int64 { return r.replayed.Load() }

// Outages returns the number of connections that cannot connect.
func (r *Retrier) Outages() (n int) {
	r.outages.since.Range(func(any, any) bool { n++; return true })
	return n
}

// KnowLatency lets the Retrier know how long the answers of a method usually take, as after many calls, so that those are
// hedged after a fixed delay.
func (r *Retrier) KnowLatency(cc *grpc.ClientConn, method string, usual time.Duration) {
	p, _ := compiled.NewPolicy(spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, HedgingDelay: usual}})
	key := methodKey{method: method}
	if cc != nil {
		key.target = cc.Target()
	}
	known := r.newRecord(key, cc).method.For(compiled.Of(p).Quantile(), clock.Now())
	for range 40 {
		known.Answered(clock.Now(), evidence.Answer{Took: usual, Accepted: true})
	}
}

// UnaryServer returns the interceptor of ServerOptions for unary calls.
func (r *Retrier) UnaryServer() grpc.UnaryServerInterceptor { return serveUnary }

// SetMostBalances bounds the balances.
func (r *Retrier) SetMostBalances(n int) { r.budgets.Table.Most = n }

// Kept returns the bytes of memory that a stream has for what it has sent.
func Kept(made grpc.ClientStream) (n int) {
	s := made.(*stream)
	s.lock()
	defer s.mu.Unlock()
	for _, b := range s.log.blocks {
		n += cap(b.data)
	}
	return n + cap(s.log.newest.data) + cap(s.encoder.newest.data)
}

// MistakeAnEnd reports the end of an attempt that a stream has never made, as a fault of the stream would.
func MistakeAnEnd(made grpc.ClientStream) {
	s := made.(*stream)
	s.lock()
	other := &streamAttempt{attempt: s.newest.attempt}
	other.number = 99
	s.decide(func() { s.attemptEnded(other, status.Error(codes.Unavailable, "of no attempt"), false) })
}

// SetMostMethods bounds the methods.
func (r *Retrier) SetMostMethods(n int) { r.methods.Most = n }
