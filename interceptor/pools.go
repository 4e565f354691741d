// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"

	"github.com/stagger-go/stagger/internal/lease"
	"github.com/stagger-go/stagger/policy"
)

// PoolState is a reading of a pool, as one Retrier sees it. What it counts are extra attempts of the usual cost.
type PoolState struct {
	Name     string
	Clients  float64 // that share it, as it last said; 0: not known
	Balance  float64 // leased by this Retrier and not spent
	Asked    float64 // for, so far
	Leased   float64 // so far
	Denied   uint64  // withdrawals that the pool did not pay for, so far
	Requests uint64  // that were made, so far
	Err      error   // why the last one has failed: the pool is away; nil: it is not
}

// pools reads the pools that the Retrier's budgets lease from, by name.
func (r *Retrier) pools() (list []PoolState) {
	if r.budgets.pools != nil {
		for _, s := range r.budgets.pools.States() {
			list = append(list, PoolState{s.Name, s.Clients, s.Balance, s.Asked, s.Leased, s.Denied, s.Requests, s.Err})
		}
	}
	return list
}

// notePool says that a pool cannot be used any more, or that it can again.
func (r *Retrier) notePool(s lease.State) {
	d := policy.Diagnostic{Field: "pool", Value: s.Name, Message: "is back"}
	if s.Err == nil {
		r.note(d)
		return
	}
	d.Message = fmt.Sprintf("is away: what is leased is spent, then a share of the pool; clients: %v; %v", s.Clients, s.Err)
	r.warn(d)
}
