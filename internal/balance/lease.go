// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import "time"

// The shares of ratio budgets add up to the share of the sum, whatever the number of clients. Reserves don't: ten thousand
// clients with one retry a second have no useful limit. So the clients of a fleet can lease their reserve from one pool.

// LeaseOf returns the client's lease on a pool, and sets its rate to perSecond.
type LeaseOf func(pool string, perSecond float64) (Lease, error)

// Lease is the part of a pool that a client may spend. Its methods are safe for concurrent use. They don't wait, do no I/O, and
// neither use the Retrier nor make calls. A lease requests missing tokens in the background, so Take may promise tokens that
// only Confirm grants, after the wait in [Draw].
//
//	Take ─┬─► refused
//	      ├─► granted ────────────────────────────┬─► the attempt is sent; if it helped ─► Return
//	      └─► asked for ─► Confirm ─┬─► granted ──┘
//	                    │           └─► refused
//	                    └─► the call ends before ─► Return
type Lease interface {
	// Take takes millionths of an extra attempt.
	Take(now time.Duration, tokens int64) (Draw, bool)
	// Confirm reports whether the requested draw has been granted. If not, the draw is over.
	Confirm(now time.Duration, d Draw) bool
	// Return returns tokens that weren't needed, or that paid for an attempt that helped. They count until their lease ends.
	Return(now time.Duration, d Draw)
	// Balance returns the leased and unspent millionths.
	Balance(now time.Duration) int64
}

// Draw is a withdrawal from a [Lease]. The zero Draw is empty.
type Draw struct {
	Number uint64        // of the lease or, if Asked, of the request; 0: none
	Tokens int64         // in millionths of an extra attempt
	Asked  bool          // the tokens are requested and not yet granted
	Wait   time.Duration // until the answer is usually known; 0 unless Asked
}
