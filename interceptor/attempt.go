// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc/peer"
)

// attempt is one attempt of a call. What the engine knows of it stands there.
type attempt struct {
	attemptOptions

	number int           // 1 is the first
	hedge  bool          // it was sent beside others
	began  time.Duration // on the budgets' clock
	ctx    context.Context
	cancel context.CancelFunc
	took   time.Duration // until it ended
	done   bool          // gRPC had ended it when it returned, so nobody writes to its options any more
}

// report is what gRPC has reported of an attempt that has returned: nothing, if gRPC may still write there, as
// when the error comes from an inner interceptor.
func (a *attempt) report() *attemptOptions {
	if !a.done {
		return &unreported
	}
	return &a.attemptOptions
}

var unreported = attemptOptions{peer: peer.Peer{Addr: nowhere{}}}
