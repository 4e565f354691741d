// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import "time"

// Shares of a ratio add up to the share of the sum, whatever the number of clients. Reserves do not: ten thousand
// clients of one retry a second each bound nothing. So the clients of a fleet can lease their reserve from one pool.

// LeaseOf returns the client's part of a pool, whose rate is from now on perSecond.
type LeaseOf func(pool string, perSecond float64) (Lease, error)

// Lease is the part of a pool that a client may spend. Its methods are safe for concurrent use and neither wait nor use
// the Retrier nor make calls. None does I/O: what a lease lacks is asked for in the background, so that Take may promise
// what only Confirm grants, once [Draw] says that it can be known.
//
//	Take ─┬─► refused
//	      ├─► granted ────────────────────────────┬─► the attempt is sent; if it helped ─► Return
//	      └─► asked for ─► Confirm ─┬─► granted ──┘
//	                    │           └─► refused
//	                    └─► the call ends before ─► Return
type Lease interface {
	// Take takes so many millionths of an extra attempt.
	Take(now time.Duration, tokens int64) (Draw, bool)
	// Confirm reports whether the draw, which was asked for, has been granted by now. If not, it is over.
	Confirm(now time.Duration, d Draw) bool
	// Return gives back what was not needed, or has helped. It counts until its lease ends.
	Return(now time.Duration, d Draw)
	// Balance is what is leased and not spent, in millionths.
	Balance(now time.Duration) int64
}

// Draw is what was taken from a [Lease]. The zero Draw is nothing.
type Draw struct {
	Number uint64        // of the lease or, while it is asked for, of the request; 0: none
	Tokens int64         // in millionths of an extra attempt
	Asked  bool          // it is not known yet whether it is granted
	Wait   time.Duration // until that is known, as a rule; 0 unless Asked
}
