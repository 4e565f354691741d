// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// Mode says whether extra attempts are sent: retries, hedges and resumptions. "" means [ModeEnforce].
type Mode string

// Modes, each stricter than the one before.
const (
	ModeEnforce Mode = "ENFORCE" // they are sent
	ModeObserve Mode = "OBSERVE" // extra attempts aren't sent: observers receive the decision on the first one of each call
	ModeOff     Mode = "OFF"     // they aren't sent
)

var modes = []Mode{ModeEnforce, ModeObserve, ModeOff} // each stricter than the one before

// StrictestMode returns the strictest of modes that apply to one call: [ModeOff] before [ModeObserve] before [ModeEnforce].
func StrictestMode(of ...Mode) Mode {
	strictest := ModeEnforce
	for _, m := range of {
		if slices.Index(modes, m) > slices.Index(modes, strictest) {
			strictest = m
		}
	}
	return strictest
}
