// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"time"
)

// attempt is the running attempt of a call.
type attempt struct {
	attemptOptions

	number int           // 1 is the first
	began  time.Duration // on the budgets' clock
	permit grant         // that paid for it, until it is settled
	done   func(error)   // tells the breaker how it has ended; nil without one, and once told
}

// attempts that have succeeded are used again, so that success allocates nothing. One that failed is
// not: an inner interceptor may have left something behind that still writes to it.
var attempts = sync.Pool{New: func() any { return newAttempt() }}

func newAttempt() *attempt {
	a := new(attempt)
	a.init()
	return a
}

// release lets another call use the attempt.
func (a *attempt) release() {
	a.reset()
	attempts.Put(a)
}

// settled is what gRPC reports of an attempt that has failed: nothing, if it has not ended it yet and
// so may still write there, as when the error comes from an inner interceptor.
func (a *attempt) settled() *attempt {
	if a.ended.Load() {
		return a
	}
	silent := newAttempt()
	silent.number, silent.began, silent.permit, silent.done = a.number, a.began, a.permit, a.done
	return silent
}
