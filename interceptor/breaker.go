// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// Breaker is a circuit breaker with two steps: leave to send, and word of how it went. S says in what
// state the circuit is, "open" while it lets nothing through. *gobreaker.TwoStepCircuitBreaker[any] of
// github.com/sony/gobreaker/v2 is one, with S = gobreaker.State.
type Breaker[S fmt.Stringer] interface {
	// Allow is asked before every attempt. If it returns an error, the attempt is not sent; else done
	// is called once, with the attempt's error: which of them speak against the server is for the
	// breaker to say.
	Allow() (done func(error), err error)
	// State is asked before a call waits to retry, so that it does not wait in vain.
	State() S
}

// WithBreaker asks a circuit breaker before every attempt. find returns the one for a target and
// method, or nil for none; it is asked once a call, and must be safe for concurrent use. A call whose
// first attempt is refused ends with UNAVAILABLE, with the breaker's error in it (errors.Is); a retry
// that is refused ends the call with the error that it has. The reason of both is breaker_open.
func WithBreaker[S fmt.Stringer](find func(target, method string) Breaker[S]) Option {
	return func(r *Retrier) error {
		if find == nil {
			return errors.New("interceptor: WithBreaker(nil): must be a function that finds a breaker")
		}
		r.breaker = func(target, method string) breaker {
			if b := find(target, method); b != nil {
				return twoStep[S]{b}
			}
			return nil
		}
		return nil
	}
}

// breaker is a [Breaker] of any S.
type breaker interface {
	Allow() (done func(error), err error)
	open() bool
}

type twoStep[S fmt.Stringer] struct{ Breaker[S] }

func (b twoStep[S]) open() bool { return b.State().String() == "open" }

// circuit is what one call has to do with its breaker.
type circuit struct {
	breaker breaker     // nil if it has none
	done    func(error) // for the attempt that is to follow; nil without leave
}

var _ policy.Breaker = (*circuit)(nil)

// Open implements [policy.Breaker].
func (c *circuit) Open() bool { return c.breaker != nil && c.breaker.open() }

// admit asks for leave to send an attempt.
func (c *circuit) admit() error {
	if c.breaker == nil {
		return nil
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return &openError{err}
	}
	c.done = done
	return nil
}

// openError is the end of a call whose first attempt a breaker has refused.
type openError struct{ err error }

func (e *openError) Error() string { return e.GRPCStatus().String() }
func (e *openError) Unwrap() error { return e.err }
func (e *openError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "circuit breaker: "+e.err.Error())
}
