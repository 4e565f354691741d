// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// call is a call that more than one attempt may be made for: one whose first attempt has failed, or
// may time out, or that observers watch.
type call struct {
	*attempt // the running one

	policy  *policy.Policy
	caller  []grpc.CallOption // as the caller gave them
	rest    []grpc.CallOption // what attempts get after their own
	wishes  wishes
	retrier *Retrier
	ctx     context.Context //nolint:containedctx // a call lives no longer than its context
	cc      *grpc.ClientConn
	method  string
	alone   bool // gRPC's own retries are known to be off
	account account
	state   policy.Call
	start   time.Duration // on the budgets' clock
	began   time.Duration // the running attempt, too
	waited  time.Duration // in backoffs
	over    bool          // it has ended, and nothing is held any more

	answered time.Duration // when a stream brought its first message; 0 for unary calls
}

// target is the name of what a connection leads to; "" without one, as in tests that call an
// interceptor directly.
func target(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}
