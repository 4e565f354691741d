// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"sync"

	"github.com/stagger-go/stagger/budget"
)

// leases are the parts that a Retrier has of its fleet's pools. Balances are made and reloaded under Retrier.reloading,
// and the fleet is the user's, who may call the Retrier from it. So the fleet is asked before, without a lock.
type leases struct {
	fleet budget.Fleet // nil: none; fixed after New
	known sync.Map     // budget.Lease by the pool's name
}

var _ budget.Fleet = (*leases)(nil)

// Check implements [budget.Fleet].
func (l *leases) Check(c budget.FleetConfig) error { return l.fleet.Check(c) }

// Lease implements [budget.Fleet] for balances: it returns what take has leased.
func (l *leases) Lease(c budget.FleetConfig) (budget.Lease, error) {
	known, _ := l.known.Load(c.Name)
	if lease, ok := known.(budget.Lease); ok {
		return lease, nil
	}
	return nil, fmt.Errorf("interceptor: pool %q is not leased", c.Name)
}

// Pools implements [budget.Fleet].
func (l *leases) Pools() []budget.PoolState {
	if l.fleet == nil {
		return nil
	}
	return l.fleet.Pools()
}

// take leases the pool that a budget names, if it names one, and sets the pool's rate. No lock may be held.
func (l *leases) take(c budget.Config) error {
	pool := poolOf(c)
	if pool.Name == "" || l.fleet == nil {
		return nil // without a fleet, the budget itself is refused
	}
	lease, err := l.fleet.Lease(pool)
	if err != nil {
		return fmt.Errorf("pool %q: %w", pool.Name, err)
	}
	l.known.Store(pool.Name, lease)
	return nil
}

// poolOf is the pool that a budget names; the zero value if it names none.
func poolOf(c budget.Config) budget.FleetConfig {
	ratio, _ := c.(budget.RatioConfig)
	return ratio.Fleet
}
