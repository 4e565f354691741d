// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package breaker puts circuit breakers of github.com/sony/gobreaker under stagger's retries: one for each target. While a
// target's circuit is open, calls to it are neither sent nor kept waiting for a retry.
package breaker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
)

// Breakers creates a breaker for each target. The zero value is ready for use, and safe for concurrent use.
type Breakers struct {
	mu       sync.Mutex // guards byTarget
	byTarget map[string]*gobreaker.TwoStepCircuitBreaker[any]
}

// For returns the breaker of a target. Pass it to interceptor.WithBreaker.
func (b *Breakers) For(target, _ string) interceptor.Gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byTarget == nil {
		b.byTarget = map[string]*gobreaker.TwoStepCircuitBreaker[any]{}
	}
	if b.byTarget[target] == nil {
		b.byTarget[target] = gobreaker.NewTwoStepCircuitBreaker[any](settings(target))
	}
	return circuit{b.byTarget[target]}
}

// circuit adapts a breaker of gobreaker to interceptor.WithBreaker.
type circuit struct {
	*gobreaker.TwoStepCircuitBreaker[any]
}

// Open implements interceptor.Gate.
func (c circuit) Open(context.Context, int) error {
	if c.State() == gobreaker.StateOpen {
		return gobreaker.ErrOpenState
	}
	return nil
}

// Allow implements interceptor.Gate.
func (c circuit) Allow(context.Context, int) (done func(error), err error) {
	return c.TwoStepCircuitBreaker.Allow()
}

// settings returns a breaker's settings: it opens when at least half of twenty attempts have failed, and lets one through
// after five seconds.
func settings(target string) gobreaker.Settings {
	return gobreaker.Settings{
		Name:     target,
		Interval: 10 * time.Second,
		Timeout:  5 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 20 && c.TotalFailures*2 >= c.Requests
		},
		IsSuccessful: healthy,
		IsExcluded:   unrelated,
	}
}

// healthy reports whether the server is healthy, judging by an attempt's error: it has answered, even if with an error.
// Otherwise every NOT_FOUND would help to open the circuit.
func healthy(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal, codes.Unknown, codes.DataLoss:
		return false
	default:
		return true
	}
}

// unrelated reports whether an error has no meaning for the server's health: the caller has given up, or the error is this client's own, as
// for a message that is too large. It must neither open a circuit nor close a half-open one.
func unrelated(err error) bool {
	return status.Code(err) == codes.Canceled || errors.Is(err, interceptor.ErrLocal)
}
