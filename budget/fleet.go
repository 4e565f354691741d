// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"regexp"
	"strconv"
	"time"
)

// Shares of a ratio add up to the share of the sum, whatever the number of clients. Reserves do not: ten thousand
// clients of one retry a second each bound nothing. So the clients of a fleet can lease their reserve from one pool.

// FleetConfig is the pool that a [Ratio] takes its reserve from, in place of MinPerSecond. The zero value is none.
type FleetConfig struct {
	// Name is that of the pool: 1 to 64 letters, digits, '-', '_' and '.'. All processes that say it share one.
	Name string
	// PerSecond is how many extra attempts the pool grants in a second, to all of them together. More than 0, at
	// most 1,000,000, at most four decimals.
	PerSecond float64
}

var poolName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// check returns nil, or FieldErrors.
func (c FleetConfig) check() error {
	err := check([]Field{{Name: "Fleet.PerSecond", Value: c.PerSecond, Low: 0.0001, High: 1e6, Decimals: 4}})
	if poolName.MatchString(c.Name) {
		return err
	}
	return flat(err, &FieldError{
		Field: "Fleet.Name", Value: strconv.Quote(c.Name), Message: "must be 1 to 64 letters, digits, '-', '_' and '.'",
	})
}

// NewFleetRatio makes a budget whose reserve is leased from a fleet's pool, if c.Fleet names one, now or after a
// reload.
func NewFleetRatio(c RatioConfig, f Fleet) (*Ratio, error) {
	err := c.Check()
	if err != nil {
		return nil, err
	}
	r := newRatio(c)
	r.fleet = f
	if r.lease, err = r.leaseOf(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Fleet leads to pools that processes share. Module budget/redisbudget has one on Redis. Its methods are safe for
// concurrent use.
type Fleet interface {
	// Check says why Lease would refuse c; nil if it would not. It changes nothing.
	Check(c FleetConfig) error
	// Lease returns this process's part of a pool: one for each name, whose rate is that of the last call.
	Lease(c FleetConfig) (Lease, error)
	// Pools reads the pools that this process has leased from, by name.
	Pools() []PoolState
}

// PoolState is a reading of a pool, as one process sees it. What it counts are extra attempts of the usual cost.
type PoolState struct {
	Name      string
	PerSecond float64 // of the whole pool
	Clients   float64 // that share it, as it last said; 0: not known
	Balance   float64 // leased by this process and not spent
	Asked     float64 // for, so far
	Leased    float64 // so far
	Denied    uint64  // withdrawals that the pool did not pay for, so far
	Requests  uint64  // that were made, so far
	Err       error   // why the last one has failed: the pool is away; nil: it is not
}

// Lease is the part of a pool that a process may spend. Its methods are safe for concurrent use and, as those of a
// [Budget], neither wait nor use the Retrier nor make calls. None does I/O: what a lease lacks is asked for in the background, so that Take may promise what only Confirm grants, once
// [Draw] says that it can be known.
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
	Asked  bool          // nobody knows yet whether it is granted
	Wait   time.Duration // until that is known, as a rule; 0 unless Asked
}

// Confirmer is a budget that may grant a permit only while the call waits for its next attempt. A type that wraps one
// passes Confirm on: a Retrier returns a permit that was asked for and that nobody confirms, and sends nothing.
type Confirmer interface {
	Budget
	// Confirm says whether the attempt of p may be sent, when the wait is over. A permit that is refused is neither
	// returned nor settled. It is counted as denied.
	Confirm(now time.Duration, p Permit) bool
}
