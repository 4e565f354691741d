// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"

	"github.com/stagger-go/stagger/internal/lease"
	"github.com/stagger-go/stagger/policy"
)

// PoolState is a reading of a pool, as one Retrier sees it. It counts extra attempts of the usual cost.
type PoolState struct {
	Name     string
	Clients  float64 // that share it, by its last answer; 0: unknown
	Balance  float64 // leased by this Retrier and unspent
	Asked    float64 // total requested
	Leased   float64 // total granted
	Denied   uint64  // withdrawals that the pool did not pay
	Requests uint64  // to the pool
	Err      error   // of the last request: the pool is unavailable; else nil
}

// pools returns readings of the pools that the Retrier's budgets lease from, ordered by name.
func (r *Retrier) pools() (list []PoolState) {
	if r.budgets.pools != nil {
		for _, s := range r.budgets.pools.States() {
			list = append(list, PoolState{s.Name, s.Clients, s.Balance, s.Asked, s.Leased, s.Denied, s.Requests, s.Err})
		}
	}
	return list
}

// notePool notifies observers that a pool has become unavailable, or is back.
func (r *Retrier) notePool(s lease.State) {
	d := policy.Diagnostic{Field: "pool", Value: s.Name, Message: "is available again"}
	if s.Err == nil {
		r.note(d)
		return
	}
	d.Message = fmt.Sprintf("is unavailable: the client spends its lease, then its share of the pool; clients: %v; %v", s.Clients, s.Err)
	r.warn(d)
}
