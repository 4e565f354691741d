// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
)

// Breaker is a circuit breaker with two steps: permission to send, and a report of the result. examples/breaker adapts
// github.com/sony/gobreaker/v2 in three lines. The methods run under the lock of a call: they must not block, use
// the Retrier or make calls.
type Breaker interface {
	// Allow is called before every attempt. If it returns an error, the attempt is not sent. Otherwise done
	// is called once, with the attempt's error; the breaker decides which errors count as
	// failures of the server.
	Allow() (done func(error), err error)
	// Open reports whether Allow would refuse every attempt now. It is called before the backoff of a retry, so that no call
	// waits in vain.
	Open() bool
}

// WithBreaker asks a circuit breaker before every attempt. find returns the breaker for a target and
// method, or nil for none. It is called once per call, and must be safe for concurrent use. If the first
// attempt is refused, the call ends with UNAVAILABLE, which wraps the breaker's error (errors.Is). If a retry
// is refused, the call ends with its last error. The reason of both is breaker_open.
func WithBreaker(find func(target, method string) Breaker) Option {
	return func(r *Retrier) error {
		if find == nil {
			return errors.New("interceptor: WithBreaker(nil): must be a function that finds a breaker")
		}
		r.breaker = func(target, method string) attempts.Breaker {
			if b := find(target, method); b != nil {
				return twoStep{b}
			}
			return nil
		}
		return nil
	}
}

// twoStep adapts a [Breaker] to the engine.
type twoStep struct{ Breaker }

// Allow implements [attempts.Breaker].
func (b twoStep) Allow() (done func(error), err error) {
	if done, err = b.Breaker.Allow(); err != nil {
		err = &openError{err}
	}
	return done, err
}

// openError is the error of a call whose first attempt a breaker has refused.
type openError struct{ err error }

func (e *openError) Error() string { return e.GRPCStatus().String() }
func (e *openError) Unwrap() error { return e.err }
func (e *openError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "circuit breaker: "+e.err.Error())
}
