// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
)

// Breaker is a circuit breaker with two steps: leave to send, and word of how it went. That of github.com/sony/gobreaker/v2
// becomes one with three lines more (examples/breaker). Its methods run under the lock of a call: they must not block, use
// the Retrier or make calls.
type Breaker interface {
	// Allow is asked before every attempt. If it returns an error, the attempt is not sent; else done
	// is called once, with the attempt's error: which of them speak against the server is for the
	// breaker to say.
	Allow() (done func(error), err error)
	// Open reports whether nothing is let through now. It is asked before a call waits to retry, so that it does not wait
	// in vain.
	Open() bool
}

// WithBreaker asks a circuit breaker before every attempt. find returns the one for a target and
// method, or nil for none; it is asked once a call, and must be safe for concurrent use. A call whose
// first attempt is refused ends with UNAVAILABLE, with the breaker's error in it (errors.Is); a retry
// that is refused ends the call with the error that it has. The reason of both is breaker_open.
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

// twoStep is a [Breaker] as the engine asks it.
type twoStep struct{ Breaker }

// Allow implements [attempts.Breaker].
func (b twoStep) Allow() (done func(error), err error) {
	if done, err = b.Breaker.Allow(); err != nil {
		err = &openError{err}
	}
	return done, err
}

// openError is the end of a call whose first attempt a breaker has refused.
type openError struct{ err error }

func (e *openError) Error() string { return e.GRPCStatus().String() }
func (e *openError) Unwrap() error { return e.err }
func (e *openError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "circuit breaker: "+e.err.Error())
}
