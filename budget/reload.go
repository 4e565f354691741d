// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"time"
)

// Reloadable is a budget whose config may change while calls use it. All budgets with a [Config] are.
//
// A reload scales the balance: what was half full is half full. It never refills, so that it can be used
// in the middle of an outage. A permit from before a reload gives nothing back; that of a [Concurrent]
// budget still ends what it began. A reload with the config that the budget has changes nothing.
type Reloadable interface {
	Budget
	// Reload changes the config. One that is out of bounds or of another kind is refused, and changes
	// nothing.
	Reload(now time.Duration, c Config) error
	// Drain leaves nothing of the balance, for a budget that takes the place of another one. What is in
	// flight is no balance.
	Drain(now time.Duration)
	// Fresh reports whether one that is made anew, with the same config, could not be told from it: nothing of what
	// it has seen counts any more. Only its Granted and Denied would be lost.
	Fresh(now time.Duration) bool
}

// checked returns the config as that of one kind, if it is and nothing is out of bounds.
func checked[C Config](c Config) (C, error) {
	own, ok := c.(C)
	if !ok {
		return own, fmt.Errorf("budget: Reload: must be a %T, not a %T", own, c)
	}
	return own, own.Check()
}
