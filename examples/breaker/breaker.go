// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package breaker puts circuit breakers of github.com/sony/gobreaker under stagger's retries: one for each
// target. While a target's circuit is open, no call to it is sent, nor waits to be sent again.
package breaker

import (
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
)

// Breakers makes a breaker for each target. The zero value is ready for use, and safe for concurrent use.
type Breakers struct {
	mu       sync.Mutex // guards byTarget
	byTarget map[string]*gobreaker.TwoStepCircuitBreaker[any]
}

// For finds the breaker of a target. It is what interceptor.WithBreaker asks for.
func (b *Breakers) For(target, _ string) interceptor.Breaker {
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

// circuit is a breaker of gobreaker as interceptor.WithBreaker asks it.
type circuit struct {
	*gobreaker.TwoStepCircuitBreaker[any]
}

// Open implements interceptor.Breaker.
func (c circuit) Open() bool { return c.State() == gobreaker.StateOpen }

// settings open the circuit when at least half of twenty attempts have failed, and let one through after
// five seconds.
func settings(target string) gobreaker.Settings {
	return gobreaker.Settings{
		Name:     target,
		Interval: 10 * time.Second,
		Timeout:  5 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 20 && c.TotalFailures*2 >= c.Requests
		},
		IsSuccessful: healthy,
		IsExcluded:   cancelled,
	}
}

// healthy reports whether an attempt's end says nothing against the server: it was answered, even if the
// answer is no. Without it, every NOT_FOUND would help to open the circuit.
func healthy(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal, codes.Unknown, codes.DataLoss:
		return false
	default:
		return true
	}
}

// cancelled reports whether the caller has given up, which says nothing of the server either way: it must
// neither open a circuit nor close one that is half open.
func cancelled(err error) bool { return status.Code(err) == codes.Canceled }
