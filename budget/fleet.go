// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"time"
)

// Fleet keeps the pools that a [RatioConfig] names, where all processes reach them: module budget/redisbudget does so on
// Redis. Give it to interceptor.WithFleet. No call waits for it: a Retrier asks in the background, one request a pool at
// a time. Its method is safe for concurrent use.
type Fleet interface {
	// Draw asks a pool for tokens. It must return when ctx ends, which is after five seconds: while it runs, the Retrier asks
	// the pool for nothing else. It is one atomic step, and is not repeated: a request that is made twice is granted twice.
	// A pool earns PerSecond, starts empty, and holds one second of that or ten tokens, whichever is more. It grants all
	// that it has, in whole tokens, up to Tokens; or nothing, if it has less than Least. The second result is how many
	// clients share the pool, by the time that their reports of the last half minute cover; 0 if that isn't known yet.
	Draw(ctx context.Context, r PoolRequest) (tokens int64, clients float64, err error)
}

// PoolRequest is what a Retrier asks of a pool. It is a report as well: the pool counts its clients by it.
type PoolRequest struct {
	Pool          string        // its name
	PerSecond     float64       // extra attempts that the pool earns in a second
	Tokens, Least int64         // wanted, in millionths of an extra attempt, and what is of use at least; 0: this is only a report
	Covered       time.Duration // since the last report of this client
}
