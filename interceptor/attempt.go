// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc/peer"
)

// attempt is one attempt of a call. The engine keeps its own state of it.
type attempt struct {
	attemptOptions

	number int           // 1 is the first
	hedge  bool          // it was sent in parallel with others
	began  time.Duration // on the budgets' clock
	ctx    context.Context
	cancel context.CancelFunc
	took   time.Duration // until it ended
	done   bool          // gRPC had ended it when it returned, so its options don't change any more
}

// reported returns what gRPC reported of an attempt that has returned. It is empty if gRPC may still write to it, as
// after an error of an inner interceptor.
func (a *attempt) reported() *attemptOptions {
	if !a.done {
		return &unreported
	}
	return &a.attemptOptions
}

var unreported = attemptOptions{peer: peer.Peer{Addr: nowhere{}}}
