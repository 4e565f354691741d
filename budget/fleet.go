// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"time"
)

// Fleet provides the pools of [RatioConfig] to all processes: module budget/redisbudget does so on Redis. Pass it to
// interceptor.WithFleet. No call waits for it: a Retrier asks in the background, one request per pool at a time. Draw must be
// safe for concurrent use.
type Fleet interface {
	// Draw asks a pool for tokens. It must return when ctx ends, after five seconds: while it runs, the Retrier asks the pool
	// for nothing else. It must be one atomic step, and must not retry: a repeated request is granted twice. A pool earns
	// PerSecond, starts empty, and holds the earnings of one second or ten tokens, whichever is more. It grants all its whole
	// tokens up to Tokens, or nothing if it has less than Least. The second result is the number of clients that share the
	// pool, from the time that their reports in the last half minute cover, or 0 if that isn't known yet.
	Draw(ctx context.Context, r PoolRequest) (tokens int64, clients float64, err error)
}

// PoolRequest is a Retrier's request to a pool. It is also a report, by which the pool counts its clients.
type PoolRequest struct {
	Pool          string        // its name
	PerSecond     float64       // extra attempts that the pool earns in a second
	Tokens, Least int64         // wanted, in millionths of an extra attempt, and the least that is useful; 0: only a report
	Covered       time.Duration // since this client's last report
}
