// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/stagger-go/stagger/internal/document"

// Mode says whether extra attempts are sent: retries, hedges and resumptions. "" means [ModeEnforce]. The values are in
// alphabetical order: the greater of two modes is the stricter.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "ENFORCE" // they are sent
	ModeObserve Mode = "OBSERVE" // they aren't sent: the first one of each call is decided on, and observers receive the decision
	ModeOff     Mode = "OFF"     // they aren't sent
)

// checkMode checks a mode and its percentage. Fields are named as in a policy file, under the given path.
func checkMode(report *document.Report, prefix string, m Mode, percent *float64) {
	checkWord(report, prefix+"mode", m, modes...)
	if percent != nil {
		checkNumber(report, prefix+"percent", *percent, 0, 100, 4)
	}
}
