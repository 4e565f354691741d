// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "github.com/stagger-go/stagger/policy"

// gates are what [policy.Policy.Decide] asks on behalf of one call, and what the call holds of them:
// permits of its budget, a place among the calls that wait, leave of its circuit breaker.
type gates struct {
	account
	spot
	circuit
}

var _ policy.Gates = (*gates)(nil)

// sent moves on: the attempt that was to follow is the one that runs, and the wait is over.
func (g *gates) sent() {
	g.Leave()
	g.spend()
}

// giveBack lets go of what was taken for an attempt that is not sent after all.
func (g *gates) giveBack() {
	g.Leave()
	g.unspend()
}
